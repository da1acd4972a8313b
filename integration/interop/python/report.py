"""The line protocol between a client program and the test that runs it.

Every check prints one line, "PASS name" or "FAIL name: why"; the last line is "END count". A line "CALL what" asks the
test for something that only it can do to the server (restart, kill, cut); it answers with a line that starts with OK.
"""
import sys
import time
import traceback

_checks = []


def check(func):
    """Registers a function as a check; its name with dashes is the name of the check."""
    _checks.append(func)
    return func


def call(what):
    print("CALL " + what, flush=True)
    answer = sys.stdin.readline().strip()
    if not answer.startswith("OK"):
        raise AssertionError("CALL %s was answered %r" % (what, answer))


def equal(got, want, what=""):
    if got != want:
        raise AssertionError("%s: got %r, want %r" % (what or "value", got, want))


def eventually(condition, seconds=15.0, what="condition"):
    """Waits until condition() is true."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("not within %g s: %s" % (seconds, what))
        time.sleep(0.01)


def run(*args):
    failed = 0
    for func in _checks:
        name = func.__name__.strip("_").replace("_", "-")
        try:
            func(*args)
        except Exception as err:  # a failed check must not stop the ones behind it
            failed += 1
            where = traceback.extract_tb(err.__traceback__)[-1]
            here = [f for f in traceback.extract_tb(err.__traceback__) if f.filename == func.__code__.co_filename]
            line = here[-1].lineno if here else where.lineno
            text = " ".join(str(err).split()) or repr(err)
            print("FAIL %s: line %d: %s: %s" % (name, line, type(err).__name__, text), flush=True)
        else:
            print("PASS %s" % name, flush=True)
    print("END %d" % len(_checks), flush=True)
    sys.exit(1 if failed else 0)
