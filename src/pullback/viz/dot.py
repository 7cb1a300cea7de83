"""The graph in Graphviz's DOT language (layer 6)."""

from __future__ import annotations

from pullback.viz.collapse import Group, shown
from pullback.viz.model import CONSTANT, DETACHED, LEAF, OP, ROOT, Model, Record
from pullback.viz.text import (
    bytes_text,
    headline,
    place_text,
    plural,
    saved_text,
    shape_text,
    source_text,
    summarize,
)

STYLES = {
    OP: 'shape=box style="rounded,filled" fillcolor="#ffffff" color="#8a94a6"',
    LEAF: 'shape=box style="rounded,filled" fillcolor="#dcebff" color="#2f6fd0"',
    CONSTANT: 'shape=plaintext fontcolor="#6b7280"',
    DETACHED: 'shape=box style="rounded,filled,dashed" fillcolor="#fff1e0" color="#c2660a"',
    ROOT: 'shape=box style="rounded,filled" fillcolor="#1f2937" fontcolor="#ffffff"',
}
GROUP_STYLE = 'shape=box3d style=filled fillcolor="#efeafc" color="#6d4bc3"'


def quote(text: str) -> str:
    """A DOT string; a line break in `text` stays one."""
    # Graphviz gives backslashes a meaning in labels, so each is doubled.
    body = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{body}"'


def dot(model: Model, top: Group) -> str:
    """DOT source: data flows down, from leaves to outputs."""
    stands = shown(top)
    names: dict[int, str] = {}
    lines = [
        "digraph autograd {",
        f"  label={quote(headline(model))}; labelloc=t; rankdir=TB; compound=true;",
        '  node [fontname="Helvetica" fontsize=11 margin="0.12,0.06"];',
        '  edge [color="#6b7280" arrowsize=0.7];',
    ]
    write_entries(model, top, names, lines, "  ")
    drawn: set[tuple[str, str, bool]] = set()
    for record in model.records:
        target = stands[record.id]
        for edge in record.inputs:
            source = stands[edge.source]
            if source is target and isinstance(source, Group):
                continue
            cut = model.records[edge.source].kind == DETACHED and not isinstance(source, Group)
            triple = (name_of(source, names), name_of(target, names), cut)
            if triple in drawn:
                continue
            drawn.add(triple)
            style = ' [style=dashed color="#c2660a" arrowhead=tee]' if cut else ""
            lines.append(f"  {triple[0]} -> {triple[1]}{style};")
    lines.append("}")
    return "\n".join(lines) + "\n"


def name_of(unit: int | Group, names: dict[int, str]) -> str:
    return names[id(unit)] if isinstance(unit, Group) else f"n{unit}"


def write_entries(
    model: Model, group: Group, names: dict[int, str], lines: list[str], indent: str
) -> None:
    """The nodes of one open group; open groups within become clusters."""
    for entry in group.items:
        if not isinstance(entry, Group):
            record = model.records[entry]
            label = quote(label_of(record))
            tip = quote(tip_of(record))
            lines.append(f"{indent}n{entry} [label={label} tooltip={tip} {STYLES[record.kind]}];")
            continue
        names[id(entry)] = name = f"g{len(names)}"
        about = summarize(model, entry)
        title = f"{about.title}  {about.where}"
        if entry.open:
            lines.append(f"{indent}subgraph cluster_{name} {{")
            lines.append(f'{indent}  label={quote(title)}; style="rounded,dashed";')
            write_entries(model, entry, names, lines, indent + "  ")
            lines.append(f"{indent}}}")
            continue
        size = f"{plural(about.operations, 'operation')}, {bytes_text(about.owned_bytes)}"
        label = quote(f"{title}\n{about.recipe}\n{size}")
        lines.append(f"{indent}{name} [label={label} {GROUP_STYLE}];")


def label_of(record: Record) -> str:
    """The lines written in a node."""
    lines = [record.title]
    if record.kind == LEAF and not record.label:
        lines = ["leaf"]
    if record.kind == DETACHED:
        lines = [record.note]
    if record.kind == CONSTANT:
        lines = ["constant"]
    if record.shapes:
        lines.append(shape_text(record.shapes, record.dtypes))
    if record.kind in (OP, DETACHED):
        lines += [saved_text(record), place_text(record.site, full=False)]
    return "\n".join(line for line in lines if line)


def tip_of(record: Record) -> str:
    """The text shown on hovering."""
    lines = [record.name, place_text(record.site), source_text(record.site, 200), record.note]
    return "\n".join(line for line in lines if line)
