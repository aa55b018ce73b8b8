#!/usr/bin/python3
"""Looks at the dashboard as a person would: loads it, filters, retries, logs in, and lets axe-core judge it.

    dashboard.py URL [--token TOKEN] [--axe FILE] [--pictures FOLDER]

The server has a job 1 whose items are /0.png … and two missing ones, and a job 2 with markup for a name. Exit code 1 and a
line for each thing that is not as it should be.
"""
import argparse
import json
import pathlib
import sys
import time

from browser import Browser

options = argparse.ArgumentParser()
options.add_argument("url")
options.add_argument("--token")
options.add_argument("--axe")
options.add_argument("--pictures")
options = options.parse_args()
wrong = []


def check(what, is_right):
    if not is_right:
        wrong.append(what)


def judge(browser, page):
    """axe-core's findings of any weight, on a desk and on a phone, by day and by night; and whether a phone must scroll
    sideways."""
    if options.axe:
        browser.run(pathlib.Path(options.axe).read_text() + "; true")
    for width, height in ((390, 844), (1440, 900)):
        for dark in (False, True):
            browser.size(width, height, dark)
            name = f"{page}, {width} px{', dark' if dark else ''}"
            if not options.axe:
                continue
            found = browser.run("axe.run().then(r => r.violations.map(v => v.id + ': ' + v.help + ' ' + v.nodes.map(n => n.target).join(' ')))")
            for finding in found:
                wrong.append(f"axe on {name}: {finding}")
        excess = browser.run("document.documentElement.scrollWidth - window.innerWidth")
        check(f"{name} is {excess} px wider than the window", excess <= 0)


def picture(browser, name):
    if not options.pictures:
        return
    for width, height in ((390, 844), (1440, 900)):
        for dark in (False, True):
            browser.size(width, height, dark)
            time.sleep(0.8)
            browser.picture(f"{options.pictures}/{name}-{width}-{'dark' if dark else 'light'}.png")
    browser.size(1440, 900)


with Browser() as browser:
    browser.size(1440, 900)
    if options.token:
        browser.open(options.url + "/")
        browser.wait("document.querySelector('#token')")
        judge(browser, "the login")
        browser.run("document.querySelector('#token').value = 'this is not the token'; document.querySelector('form').submit()")
        browser.wait("document.querySelector('.wrong')")
        browser.run(f"document.querySelector('#token').value = {json.dumps(options.token)}; document.querySelector('form').submit()")
        browser.wait("document.querySelector('#logout') && !document.querySelector('#logout').hidden")
        # The failed login is an answer that the browser logs as an error.
        browser.errors.clear()
    began = time.time()
    browser.open(options.url + "/")
    browser.wait("document.querySelector('dl.tiles')")
    check(f"the first paint took {time.time() - began:.1f} s", time.time() - began < 5)
    browser.wait("document.querySelector('.live.on')")
    browser.wait("document.querySelectorAll('main tbody tr').length >= 2")
    # What comes from outside is text.
    check("markup in a name is not markup", browser.run("!document.querySelector('main b.evil') && document.body.innerText.includes('<b class=\"evil\">')"))
    check("no inline script ran", browser.run("window.evil === undefined"))
    browser.wait("document.querySelectorAll('figure svg').length === 4")
    judge(browser, "the jobs")
    picture(browser, "jobs")

    # By keyboard: the first link skips to the content, the next ones are the pages.
    browser.run("document.activeElement.blur()")
    browser.key("Tab", 9)
    check("the first stop is the skip link", browser.run("document.activeElement.className") == "skip")
    stops = []
    for _ in range(8):
        browser.key("Tab", 9)
        stops.append(browser.run("document.activeElement.textContent.trim()"))
        check(f"{stops[-1]!r} shows that it has the focus", browser.run("getComputedStyle(document.activeElement).outlineStyle !== 'none'"))
    pages = [name for name in stops if name in ("Jobs", "Hosts", "Blacklist", "Cache", "Schedules")]
    check(f"the keyboard reaches the pages in their order, not {stops}", pages == ["Jobs", "Hosts", "Blacklist", "Cache", "Schedules"])
    browser.run("[...document.querySelectorAll('nav a')].find(a => a.textContent.trim() === 'Hosts').focus()")
    browser.key("Enter", 13)
    browser.wait("document.querySelector('h1')?.innerText === 'Hosts'")
    # A dialog has the focus, and Escape ends it without a change.
    browser.run("[...document.querySelectorAll('button')].find(b => b.textContent === 'Limits of the worker…').focus()")
    browser.key("Enter", 13)
    browser.wait("document.querySelector('dialog[open]')?.contains(document.activeElement)")
    browser.key("Escape", 27)
    browser.wait("!document.querySelector('dialog[open]')")
    check("Escape sets no limits", browser.run("fetch('/api/hosts').then(r => r.json()).then(d => d.limits.length)") == 0)

    browser.open(options.url + "/#/jobs/1")
    browser.wait("document.querySelectorAll('main table tbody tr').length > 4")
    browser.wait("document.querySelector('img.thumb')?.complete")
    judge(browser, "a job")
    picture(browser, "job")
    browser.run("{ const s = document.querySelector('#i-state'); s.value = 'failed'; s.dispatchEvent(new Event('change')); }")
    browser.wait("[...document.querySelectorAll('.card .badge')].every(b => b.textContent === 'failed') && document.querySelectorAll('.card .badge').length === 2")
    browser.run("[...document.querySelectorAll('.card td.url button')].find(b => b.textContent === 'History').click()")
    browser.wait("document.querySelector('.history')?.innerText.includes('http-404')")
    # The files of an item's URL are kept, and no longer.
    browser.run("[...document.querySelectorAll('.history button')].find(b => b.textContent === 'Keep its files always').click()")
    browser.wait("document.querySelector('#notice').innerText.includes('stay in the cache')")
    browser.wait("document.querySelector('.history button')?.getAttribute('aria-pressed') === 'true'")
    browser.run("document.querySelector('.history button').click()")
    browser.wait("document.querySelector('#notice').innerText.includes('may be evicted')")

    # The largest item comes first in that order.
    browser.run("{ const s = document.querySelector('#i-state'); s.value = ''; s.dispatchEvent(new Event('change')); }")
    browser.run("{ const s = document.querySelector('#i-order'); s.value = 'bytes'; s.dispatchEvent(new Event('change')); }")
    browser.wait("fetch('/api/jobs/1/items?sort=bytes').then(r => r.json()).then(d => d.items.length > 4 && d.progress == null && document.querySelector('.card td.url').textContent.includes(d.items[0].url))")
    browser.wait("document.querySelector('.filters .hint')?.textContent === 'page 1'")

    # The blacklist by class, and all of these off it at once; the dialog says how many.
    browser.open(f"{options.url}/#/blacklist")
    browser.wait("document.querySelectorAll('main tbody tr').length > 0")
    listed = browser.run("fetch('/api/blacklist').then(r => r.json()).then(d => d.count)")
    browser.run("{ const s = document.querySelector('#b-class'); s.value = 'http-404'; s.dispatchEvent(new Event('change')); }")
    browser.wait("[...document.querySelectorAll('main button')].some(b => b.textContent === 'Take these off…' && !b.hidden)")
    browser.run("[...document.querySelectorAll('main button')].find(b => b.textContent === 'Take these off…').click()")
    browser.wait("document.querySelector('dialog[open]')")
    check("it says what it takes off", browser.run(f"document.querySelector('dialog').innerText.includes('{listed} URLs of class http-404')"))
    browser.key("Escape", 27)
    browser.wait("!document.querySelector('dialog[open]')")

    browser.open(f"{options.url}/#/jobs/1")
    browser.wait("[...document.querySelectorAll('button')].some(b => b.textContent === 'Retry failures…')")
    browser.wait("document.querySelectorAll('main table tbody tr').length > 4")
    # A retry says what it touches, and the page follows the work.
    browser.run("[...document.querySelectorAll('button')].find(b => b.textContent === 'Retry failures…').click()")
    browser.wait("document.querySelector('dialog[open]')")
    check("a retry says what it touches", browser.run("document.querySelector('dialog').innerText.includes('2 failed or cancelled items')"))
    # By class or host alone, with the number that each choice touches.
    browser.run("{ const s = document.querySelector('#r-class'); s.value = 'http-404'; s.dispatchEvent(new Event('change')); }")
    check("a retry by class says what it touches", browser.run("document.querySelector('dialog').innerText.includes('2 failed items of class http-404')"))
    browser.run("{ const s = document.querySelector('#r-class'); s.value = ''; s.dispatchEvent(new Event('change')); }")
    judge(browser, "a dialog")
    browser.run("document.querySelector('dialog button[value=yes]').click()")
    browser.wait("document.querySelector('#notice').innerText.includes('2 items go back into the queue')")

    # Without the session's secret nothing is changed.
    refused = browser.run("fetch('/api/jobs/1/cancel', { method: 'POST', body: '{}' }).then(r => r.status)")
    check(f"a change without the secret is answered with {refused}", refused == 403)
    browser.errors.clear()

    for page in ("hosts", "blacklist", "cache", "schedules"):
        browser.open(f"{options.url}/#/{page}")
        browser.wait(f"document.querySelector('h1')?.innerText.toLowerCase() === '{page}'")
        time.sleep(0.5)
        judge(browser, page)
        picture(browser, page)

    # A job by the form; the live state shows it.
    browser.open(options.url + "/#/")
    browser.wait("[...document.querySelectorAll('button')].some(b => b.textContent === 'Add a job')")
    browser.run("[...document.querySelectorAll('button')].find(b => b.textContent === 'Add a job').click()")
    browser.wait("document.querySelector('#f-urls')")
    judge(browser, "the form")
    browser.run("document.querySelector('#f-urls').value = 'https://a.example/new.png'; document.querySelector('#f-name').value = 'by hand'; document.querySelector('dialog button[value=yes]').click()")
    browser.wait("document.querySelector('#notice').innerText.includes('was added')")
    browser.wait("document.querySelector('main').innerText.includes('by hand')")
    for error in browser.errors:
        wrong.append(f"the page complains: {error}")

for line in wrong:
    print(line)
sys.exit(1 if wrong else 0)
