#!/usr/bin/python3
"""How long a browser takes to show a page of the dashboard.

    paint.py URL PAGE CONDITION [RUNS]

PAGE is the part of the address behind the host, such as '/#/jobs/1'; CONDITION is a JavaScript expression that is true once
the page shows its content. Prints one line for each run: the milliseconds from the navigation to the first paint, and those
until the condition holds.
"""
import sys

from browser import Browser

base, page, condition = sys.argv[1:4]
runs = int(sys.argv[4]) if len(sys.argv) > 4 else 5

with Browser() as browser:
    browser.size(1440, 900)
    for _ in range(runs):
        # Another page first: an address that differs behind its '#' alone loads nothing.
        browser.open("about:blank")
        browser.send("Page.navigate", url=base + page)
        browser.wait(f"location.href.startsWith({base!r})")
        shown = browser.run(
            "new Promise(done => { const look = () => (" + condition + ") ? done(performance.now()) : requestAnimationFrame(look); look() })")
        paint = browser.run("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        print(f"{paint:.0f} {shown:.0f}")
