#!/usr/bin/env python3
"""How long a reader and a writer wait beside work on many jobs and items.

    scripts/bench-waits.py WORKER FOLDER [ITEMS]

Both are clients as Python makes them: they wait for a lock for 5 seconds, and then fail. Each reads or writes one row
every 20 ms. FOLDER is made anew. ITEMS: a million.
"""
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time

worker, folder = sys.argv[1], sys.argv[2]
items = int(sys.argv[3]) if len(sys.argv) > 3 else 1_000_000
jobs = 10_000
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
database = os.path.join(folder, "worker.db")
environment = dict(os.environ, WORKER_DB=database, WORKER_CACHE=os.path.join(folder, "cache"))


def run(*arguments):
    subprocess.run([worker, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Client(threading.Thread):
    """Runs a statement again and again, and notes its longest wait and its errors."""

    def __init__(self, statement):
        super().__init__()
        self.statement = statement
        self.longest = 0.0
        self.count = 0
        self.errors = 0
        self.is_over = threading.Event()

    def run(self):
        connection = sqlite3.connect(database)
        while not self.is_over.is_set():
            start = time.monotonic()
            try:
                connection.execute(self.statement).fetchall()
                connection.commit()
            except sqlite3.OperationalError:
                self.errors += 1
                connection.rollback()
            self.longest = max(self.longest, time.monotonic() - start)
            self.count += 1
            time.sleep(0.02)
        connection.close()


def measure(name, work):
    reader = Client("SELECT count(*), sum(total) FROM jobs")
    writer = Client("UPDATE jobs SET name = hex(randomblob(8)) WHERE id = (SELECT min(id) FROM jobs)")
    for client in (reader, writer):
        client.start()
    start = time.monotonic()
    try:
        work()
    finally:
        took = time.monotonic() - start
        for client in (reader, writer):
            client.is_over.set()
            client.join()
    print(
        f"{name:<34} {took:7.2f} s   reader waited {reader.longest:5.2f} s ({reader.errors} failed of {reader.count})"
        f"   writer {writer.longest:5.2f} s ({writer.errors} failed of {writer.count})",
        flush=True)


def sql(script):
    connection = sqlite3.connect(database, timeout=60)
    connection.executescript(script)
    connection.close()


run("init")
# The job that the writer changes.
sql("INSERT INTO jobs (name, urls, state) VALUES ('kept', '[\"https://a.example/\"]', 'paused');")
sql(
    f"""
    BEGIN IMMEDIATE;
    WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {jobs})
        INSERT INTO jobs (name) SELECT 'job ' || i FROM n;
    INSERT INTO items (job, url) SELECT id, 'https://a.example/' || id FROM jobs WHERE name <> 'kept';
    UPDATE jobs SET state = 'cancelled' WHERE name <> 'kept';
    COMMIT;
    """)
run("run", "--drain")
measure(f"prune {jobs} jobs", lambda: run("prune", "--older-than", "0s", "--yes"))

path = os.path.join(folder, "list")
with open(path, "w", encoding="ascii") as file:
    file.writelines(f"https://a.example/pictures/{number}.jpg\n" for number in range(items))
measure(f"enqueue {items} lines", lambda: run("enqueue", "--file", path))
connection = sqlite3.connect(database)
job = str(connection.execute("SELECT max(id) FROM jobs").fetchone()[0])
connection.close()
measure(f"cancel {items} items", lambda: run("cancel", job))
measure(f"retry {items} items", lambda: run("retry", job))
measure(f"DELETE a job of {items} items", lambda: sql(f"DELETE FROM jobs WHERE id = {job};"))
