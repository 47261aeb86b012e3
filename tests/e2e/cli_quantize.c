/* cli_quantize.c - importance matrices, comparisons and budgets from the outside, as a person uses them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "command.h"
#include "data.h"

static char model[512], text[512], matrix[512], half[512], base[512], out[512], plot[512];

static void done(command_result r)
{
    if (r.code) fail_msg("%d: %s", r.code, r.err);
    command_free(&r);
}

static void usage(command_result r, const char *part)
{
    if (r.code != 2 || !strstr(r.err, part)) fail_msg("%d: '%s'; expected a usage error with '%s'", r.code, r.err, part);
    command_free(&r);
}

static double divergence(const char *m)
{
    command_result r = command("perplexity", "-m", m, "-t", "1", "--kl-base", base, "--kl", "--json");
    const char *p = r.code ? NULL : strstr(r.out, "\"kld\"");
    if (p) p = strstr(p, "\"value\": ");
    if (!p) fail_msg("%s: %s %s", m, r.err, r.out);
    double got = strtod(p + 9, NULL);
    command_free(&r);
    return got;
}

static void whole_way(void **unused)
{
    (void)unused;
    SHARED_OR_SKIP(model, "models/stories260K-f32.gguf");
    SHARED_OR_SKIP(text, "models/tinystories-sample.txt");
    /* a matrix in one go and in two */
    done(command("imatrix", "-m", model, "-f", text, "-t", "1", "-c", "128", "--chunks", "6", "-o", matrix));
    done(command("imatrix", "-m", model, "-f", text, "-t", "1", "-c", "128", "--chunks", "2", "-o", half));
    done(command("imatrix", "-m", model, "-f", text, "-t", "1", "-c", "128", "--chunks", "4", "--from-chunk", "2", "--in", half, "-o", half));
    size_t a_size, b_size;
    char *a = slurp(matrix, &a_size), *b = slurp(half, &b_size);
    assert_int_equal(a_size, b_size);
    free(a);
    free(b);
    command_result r = command("imatrix", "--in", matrix, "--in", half, "-o", half);
    if (r.code || !strstr(r.out, "12 chunks of 128 tokens")) fail_msg("%d: %s%s", r.code, r.out, r.err);
    command_free(&r);

    /* a base; the model itself is at no distance from it, and column weights bring a quantized one nearer */
    done(command("perplexity", "-m", model, "-f", text, "-c", "128", "--chunks", "8", "-t", "1", "--kl-base", base));
    assert_true(fabs(divergence(model)) < 1e-4);
    done(command("quantize", model, out, "iq4_nl"));
    double plain = divergence(out);
    done(command("quantize", model, out, "iq4_nl", "--imatrix", matrix));
    double weighted = divergence(out);
    r = command("perplexity", "-m", out, "--kl-base", base, "--kl");
    assert_int_equal(r.code, 0);
    static const char *const lines[] = { "Mean PPL(Q)", "Mean KLD", "99.9% KLD", "Median KLD", "RMS Δp", "Same top p", "Mean PPL(Q)/PPL(base)" };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(r.out, lines[i])) fail_msg("no line '%s' in %s", lines[i], r.out);
    command_free(&r);

    /* the same size by a budget is nearer still */
    struct { char text[32]; } size;
    size_t bytes;
    free(slurp(out, &bytes));
    snprintf(size.text, sizeof size.text, "%zu", bytes);
    done(command("quantize", model, out, "--budget", size.text, "-f", text, "-c", "128", "--calibration-tokens", "384", "-t", "1", "--rounds", "0", "--plot", plot));
    double chosen = divergence(out);
    free(slurp(out, &b_size));
    print_message("divergence of %zu bytes: plain %.5f, with a matrix %.5f; of %zu bytes by a budget %.5f\n", bytes, plain, weighted, b_size, chosen);
    assert_true(b_size <= bytes && weighted < plain && chosen < weighted);
    char *svg = slurp(plot, NULL);
    assert_true(svg && strstr(svg, "<svg") == svg && strstr(svg, "</svg>") && strstr(svg, "Q4_0"));
    free(svg);
}

static void refusals(void **unused)
{
    (void)unused;
    SHARED_OR_SKIP(model, "models/stories260K-f32.gguf");
    SHARED_OR_SKIP(text, "models/tinystories-sample.txt");
    usage(command("imatrix", "-m", model, "-f", text), "-o FILE");
    usage(command("imatrix", "-o", matrix), "--in FILE");
    usage(command("imatrix", "-f", text, "-o", matrix), "-m FILE");
    usage(command("perplexity", "-m", model, "--kl"), "--kl-base");
    usage(command("perplexity", "-m", model, "--kl", "--kl-base", base, "-f", text), "comes from the base file");
    usage(command("quantize", model, out), "either TYPE or --budget");
    usage(command("quantize", model, out, "q8_0", "--budget", "4bpw"), "either TYPE or --budget");
    usage(command("quantize", model, out, "q8_0", "--plot", plot), "only with --budget");
    usage(command("quantize", model, out, "--budget", "4bpw"), "-f FILE");
    usage(command("quantize", model, out, "--budget", "many", "-f", text), "must be bits a weight");
    usage(command("quantize", model, out, "--budget", "0.1bpw", "-f", text, "-c", "128"), "smallest file");
    usage(command("quantize", model, out, "q8_0", "--tensor-type", "ffn_down"), "REGEX=TYPE");
    usage(command("quantize", model, out, "q8_0", "--tensor-type", "(=q8_0"), "pattern");
    command_result r = command("quantize", model, out, "q8_0", "--imatrix", text);
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "no importance matrix"));
    command_free(&r);
    r = command("perplexity", "-m", model, "--kl", "--kl-base", text);
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "no base file"));
    command_free(&r);
    r = command("quantize", model, out, "q4_0", "--tensor-type", "ffn_(up|down)=q8_0", "--tensor-type", "blk\\.0\\.=q5_1", "--dry-run");
    assert_int_equal(r.code, 0);
    const char *down = strstr(r.out, "blk.0.ffn_down.weight"), *gate = strstr(r.out, "blk.0.ffn_gate.weight"), *later = strstr(r.out, "blk.1.ffn_gate.weight");
    assert_true(down && gate && later);
    assert_non_null(strstr(down, "q8_0"));
    assert_true(strstr(gate, "q5_1") && strstr(gate, "q5_1") < strchr(gate, '\n'));
    assert_true(strstr(later, "q4_0") && strstr(later, "q4_0") < strchr(later, '\n'));
    command_free(&r);
    assert_int_equal(access(out, F_OK), -1);
}

int main(void)
{
    scratch_path(matrix, "matrix.gguf");
    scratch_path(half, "half.gguf");
    scratch_path(base, "base.kl");
    scratch_path(out, "out.gguf");
    scratch_path(plot, "plot.svg");
    const struct CMUnitTest tests[] = { cmocka_unit_test(refusals), cmocka_unit_test(whole_way) };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove(matrix);
    remove(half);
    remove(base);
    remove(out);
    remove(plot);
    return failed;
}
