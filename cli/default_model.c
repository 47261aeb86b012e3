/* default_model.c - the model file of a command: -m, or for run and bench in its absence
 *
 *     LOAM_MODEL -> models/loam-stories.gguf of the repository -> Gemma 3 270M in the user's cache -> fetched there once
 * / */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session.h"

#define CACHED_NAME "gemma-3-270m-q4_k_m.gguf"

static char *joined(const char *a, const char *b)
{
    buffer path = { 0 };
    buffer_add(&path, a, strlen(a));
    buffer_add(&path, b, strlen(b));
    return path.data;
}

static char *existing(char *path)
{
    struct stat st;
    if (path && stat(path, &st) == 0 && S_ISREG(st.st_mode)) return path;
    free(path);
    return NULL;
}

/* models/ of the repository whose build folder holds this program, or of the working folder. */
static char *repository_model(void)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *found = NULL;
    if (n > 0) {
        self[n] = 0;
        char *slash = strrchr(self, '/');
        if (slash) *slash = 0;
        found = existing(joined(self, "/../models/loam-stories.gguf"));
    }
    return found ? found : existing(joined("models/loam-stories.gguf", ""));
}

/* ~/.cache/loam, made where it is missing. NULL where there is no home. */
static char *cache_folder(void)
{
    const char *cache = environment("XDG_CACHE_HOME"), *home = environment("HOME");
    char *base = cache && cache[0] == '/' ? joined(cache, "") : home ? joined(home, "/.cache") : NULL;
    if (!base) return NULL;
    mkdir(base, 0700);
    char *folder = joined(base, "/loam");
    mkdir(folder, 0700);
    free(base);
    return folder;
}

char *model_path(const options *o)
{
    if (opt_given(o, OPT_MODEL)) return joined(opt_text(o, OPT_MODEL), "");
    if (environment("LOAM_MODEL")) return joined(environment("LOAM_MODEL"), "");
    char *path = repository_model();
    if (path) return path;
    char *folder = cache_folder();
    if (folder) {
        path = joined(folder, "/" CACHED_NAME);
        char *found = existing(joined(path, ""));
        if (found || fetch_model(o, folder, path)) {
            free(found);
            free(folder);
            return path;
        }
        free(path);
    }
    free(folder);
    say_note(o, "there is no model; give one with -m FILE.gguf, or set LOAM_MODEL to its path");
    return NULL;
}
