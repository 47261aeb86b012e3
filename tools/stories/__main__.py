#!/usr/bin/env python3
"""stories - writes simple English stories, for training small language models. All sentences are Loam's own.

    python3 tools/stories [-n COUNT] [--seed N] [-o FILE] [--json] [--jobs N]

Story number i of a seed is the same on every machine and however many are asked for. Plain text: a blank line lies between
stories (a story has none inside). --json: a line {"text": ...} a story. Exit status: 0, or 2 for wrong arguments.
"""
import argparse
import json
import multiprocessing
import sys

from text import Story
import friends
import quests
import wishes

PLOTS = [plot for module in (quests, friends, wishes) for plot, weight in module.PLOTS for _ in range(weight)]
CHUNK = 500


def story(seed, number):
    from beats import cast
    s = Story(seed * 1000003 + number)
    plot = s.pick(PLOTS)
    cast(s, getattr(plot, "kinds", None))
    plot(s)
    return s.text()


def chunk(work):
    seed, first, last, as_json = work
    texts = [story(seed, i) for i in range(first, last)]
    return "".join(json.dumps({"text": t}) + "\n" if as_json else t + "\n\n" for t in texts)


def main():
    p = argparse.ArgumentParser(prog="stories", description="Writes simple English stories.")
    p.add_argument("-n", type=int, default=10, metavar="COUNT", help="stories (default 10)")
    p.add_argument("--first", type=int, default=0, metavar="I", help="number of the first one (default 0)")
    p.add_argument("--seed", type=int, default=1, help="(default 1)")
    p.add_argument("-o", metavar="FILE", help="default: standard output")
    p.add_argument("--json", action="store_true", help="JSON lines")
    p.add_argument("--jobs", type=int, default=multiprocessing.cpu_count(), help="processes (default: all CPUs)")
    a = p.parse_args()
    work = [(a.seed, i, min(i + CHUNK, a.first + a.n), a.json) for i in range(a.first, a.first + a.n, CHUNK)]
    out = open(a.o, "w", encoding="utf-8") if a.o else sys.stdout
    if a.jobs > 1 and len(work) > 1:
        with multiprocessing.Pool(a.jobs) as pool:
            for text in pool.imap(chunk, work):
                out.write(text)
    else:
        for w in work:
            out.write(chunk(w))
    out.close()


if __name__ == "__main__":
    main()
