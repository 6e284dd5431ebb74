#!/usr/bin/env python3
"""debian_changelog.py MAINTAINER < CHANGELOG.md > changelog

Debian's form of CHANGELOG.md: an entry per release, with its items. A release bears its date,
"## 0.2.0 (2027-03-01)"; one that is "(not released)" has the date of SOURCE_DATE_EPOCH."""

import calendar
import os
import re
import sys
import textwrap
import time

RELEASE = re.compile(r"^## (\d+\.\d+\.\d+) \((not released|\d{4}-\d\d-\d\d)\)$")


def releases(text):
    """[(version, seconds since 1970, [item, ...])], newest first."""
    found = []
    for line in text.splitlines():
        if line.startswith("## "):
            match = RELEASE.match(line)
            if not match:
                sys.exit(f"debian_changelog.py: error: CHANGELOG.md has the heading {line!r}: write "
                         "\"## 1.2.3 (2027-03-01)\" or \"## 1.2.3 (not released)\"")
            version, date = match.groups()
            seconds = (int(os.environ["SOURCE_DATE_EPOCH"]) if date == "not released"
                       else calendar.timegm(time.strptime(date, "%Y-%m-%d")))
            found.append((version, seconds, []))
        elif line.startswith("- ") and found:
            found[-1][2].append(line[2:])
        elif line.startswith("  ") and found and found[-1][2]:
            found[-1][2][-1] += " " + line.strip()
    return found


def date(seconds):
    """As RFC 5322 has it, in English whatever the locale."""
    moment = time.gmtime(seconds)
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[moment.tm_wday]
    month = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")[moment.tm_mon - 1]
    return time.strftime(f"{day}, %d {month} %Y %H:%M:%S +0000", moment)


def entry(version, seconds, items, maintainer):
    lines = [textwrap.fill(item, 78, initial_indent="  * ", subsequent_indent="    ",
                           break_long_words=False, break_on_hyphens=False) for item in items]
    return (f"elastic-run ({version}) unstable; urgency=medium\n\n" + "\n".join(lines) +
            f"\n\n -- {maintainer}  {date(seconds)}\n")


def main():
    print("\n".join(entry(*release, sys.argv[1]) for release in releases(sys.stdin.read())), end="")


if __name__ == "__main__":
    main()
