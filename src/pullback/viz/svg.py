def svg(m,t): return ''
