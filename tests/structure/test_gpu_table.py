"""The table of GPU findings in docs/health.md against health/gpu/gpu_thresholds.h."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADING = "| name | told if | how bad | what to do |"


def rows_of_source(text):
    """Each row of kGpuThresholds as docs/health.md writes it."""
    rows = []
    for entry in re.findall(r"GpuThreshold\{(.*?)\},\n", text, flags=re.S):
        name, when, limit, unit, severity, remedy = re.fullmatch(
            r'\s*GpuRule::\w+,\s*"([^"]*)",\s*((?:"[^"]*"\s*)+),\s*([0-9.]+),\s*"([^"]*)",\s*Severity::k(\w+),\s*'
            r'((?:"[^"]*"\s*)+)', entry).groups()
        when, remedy = ("".join(re.findall('"([^"]*)"', part)) for part in (when, remedy))
        told = when if limit == "0" else f"{when} {limit} {unit}".rstrip()
        remedy = remedy.replace("|", "\\|")  # a bar ends a cell
        rows.append(f"| `{name}` | {told} | {severity.lower()} | {remedy} |")
    return rows


def rows_of_page(text, section):
    lines = text.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0].splitlines()
    start = lines.index(HEADING) + 2
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append(line)
    return rows


def test_the_page_has_the_table_of_gpu_findings():
    source = (ROOT / "health/gpu/gpu_thresholds.h").read_text()
    rows = rows_of_source(source)
    assert len(rows) == len(re.findall(r"GpuThreshold\{", source)) > 20
    assert rows_of_page((ROOT / "docs/health.md").read_text(), "The GPUs") == rows
