/* default_model.c - the model file of a command: -m, or for run and bench in its absence
 *
 *     LOAM_MODEL -> models/loam-stories.gguf of the repository, of the installation or of the working folder
 *
 * The name gemma-3-270m, where no file has it, is Gemma 3 270M in the user's cache, fetched there once. Nothing else is fetched. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session.h"

#define GEMMA       "gemma-3-270m"
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

/* Loam's own model: beside the build folder that holds this program, where an installation has it, or in the working folder. */
static char *own_model(void)
{
    static const char *const places[] = { "/../models/loam-stories.gguf", "/../share/loam/loam-stories.gguf" };
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *found = NULL;
    self[n > 0 ? n : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash) *slash = 0;
    for (size_t i = 0; slash && !found && i < sizeof places / sizeof *places; i++) found = existing(joined(self, places[i]));
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

/* Gemma in the cache. NULL after a message. */
static char *cached_model(const options *o)
{
    char *folder = cache_folder();
    if (!folder) {
        say_failed(o, "there is no home folder to keep " GEMMA " in; set XDG_CACHE_HOME");
        return NULL;
    }
    char *path = joined(folder, "/" CACHED_NAME), *found = existing(joined(path, ""));
    bool there = found || fetch_model(o, folder, path);
    free(found);
    free(folder);
    if (there) return path;
    free(path);
    return NULL;
}

char *model_path(const options *o)
{
    const char *asked = opt_given(o, OPT_MODEL) ? opt_text(o, OPT_MODEL) : environment("LOAM_MODEL");
    char *path = asked ? joined(asked, "") : own_model();
    if (asked && strcmp(asked, GEMMA) == 0) {
        char *file = existing(joined(asked, ""));
        free(path);
        path = file ? file : cached_model(o);
    }
    if (!path && !asked) say_note(o, "there is no model; give one with -m FILE.gguf (-m " GEMMA " fetches one), or set LOAM_MODEL to its path");
    return path;
}
