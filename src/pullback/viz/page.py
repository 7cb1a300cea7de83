def page(m,t): return ''
def frame(s): return ''
