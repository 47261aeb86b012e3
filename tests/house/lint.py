#!/usr/bin/env python3
"""Plants one violation of every rule of tools/lint in a scratch repository and expects each to be found, and a clean
repository to pass. Usage: lint.py LINT"""
import os
import shutil
import subprocess
import sys
import tempfile

HEAD = "/* x - a file. */\n"
CLEAN = {
    "src/base/x.c": HEAD + '#include "base/x.h"\n#include <stdlib.h>\n\nint x_free(int a) { return a; } /* malloc(1) */\n',
    "src/base/pairs.c": HEAD + "int f(int a, char *text, size_t len, int d, void *out, size_t cap, int e, int f)\n{\n}\n",
    "src/base/x.h": HEAD + "int x_free(int a);\n",
    "src/graph/y.c": HEAD + '#include "base/x.h"\n#include "kernels/k.h"\n#include "y.h"\n#include "loam/status.h"\n',
    "src/base/mem.c": HEAD + "void *mem(unsigned long n) { return malloc(n); }\n",
    "cli/main.c": HEAD + '#include "loam/status.h"\n#include "options.h"\n',
    "cli/options.h": HEAD + "extern int options;\n",
    "docs/environment.md": "`LOAM_KNOWN`\n",
    "src/base/env.c": HEAD + 'const char *f(void) { return env_get("LOAM_KNOWN"); }\n',
    "Makefile": "all:\n\techo\n",
}
LONG = "int f(void)\n{\n" + "    x();\n" * 149 + "}\n"
BAD = [  # file, text, rule
    ("src/base/b.c", HEAD + '#include "tensor/t.h"\n', "arrow"),
    ("src/tokenizer/b.c", HEAD + '#include "model/m.h"\n', "arrow"),
    ("src/tokenizer/b.c", HEAD + '#include "loam/model.h"\n', "arrow"),
    ("src/unknown/b.c", HEAD + '#include "base/x.h"\n', "arrow"),
    ("cli/b.c", HEAD + '#include "base/x.h"\n', "arrow"),
    ("include/loam/b.h", HEAD + '#include "base/x.h"\n', "arrow"),
    ("src/base/b.c", HEAD + "void *f(void) { return malloc(1); }\n", "banned"),
    ("src/base/b.c", HEAD + "void f(void) { exit(1); }\n", "banned"),
    ("src/base/b.c", HEAD + 'void f(void) { fprintf(stderr, "x"); }\n', "banned"),
    ("cli/b.c", HEAD + 'char *f(void) { return getenv("X"); }\n', "banned"),
    ("cli/b.c", HEAD + "void f(char *a, char *b) { strcpy(a, b); }\n", "banned"),
    ("src/base/b.c", HEAD + 'const char *f(void) { return env_get("LOAM_NEW"); }\n', "environment"),
    ("src/base/b.c", HEAD + "int x;\n" * 1000, "file-lines"),
    ("src/base/b.c", HEAD + LONG, "function-lines"),
    ("src/base/b.c", HEAD + "int f(int a, int b, int c, int d, int e, int (*g)(int, int), int h)\n{\n}\n", "parameters"),
    ("src/base/b.c", "int x;\n", "comment"),
    ("include/loam/b.h", HEAD + "size_t x;\n", "header"),
    ("include/loam/b.h", HEAD + "struct b { int class; };\n", "header"),
    ("docs/b.md", "blank \n", "blanks"),
    ("docs/b.md", "[a](missing.md)\n", "link"),
    ("docs/b.md", "a\tb\n", "tab"),
    ("docs/b.md", "a", "newline"),
    ("docs/b.md", "see /ro" "ot/x\n", "machine"),
    ("docs/b.md", "TO" "DO\n", "mark"),
    ("docs/b.md", "a\u202eb\n", "invisible"),
]


def lint(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**CLEAN, **files}.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as f:
                f.write(text)
        os.makedirs(os.path.join(root, "tools"))
        shutil.copy(sys.argv[1], os.path.join(root, "tools/lint"))
        subprocess.run(["git", "init", "-q", root], check=True)
        r = subprocess.run([os.path.join(root, "tools/lint")], capture_output=True, text=True)
        return r.returncode, r.stdout + r.stderr


bad = 0
HEADER = {"include/loam/status.h": HEAD + "#ifndef X_H\n#define X_H\nint loam_x(void);\n#endif\n"}
status, out = lint(HEADER)
if status != 0:
    print("a clean repository is refused:\n" + out)
    bad += 1
for path, text, rule in BAD:
    status, out = lint({path: text})
    if status == 0 or not any(x.startswith(path + ":") and f": {rule}: " in x and "warning" not in x for x in out.split("\n")):
        print(f"{path}: {rule} was not found:\n{out}")
        bad += 1
print(f"{len(BAD) + 1} repositories, {bad} wrong verdicts")
sys.exit(bad != 0)
