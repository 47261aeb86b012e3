/* search_lanes.h - the searches for scales over eight groups (search.h). A search walks LANES groups at a time, c is the
 * first of them; where a lane is done or cannot do better, masks keep what it has. See lanes.h for the vectors. */
FN lanes_signed_max(const lane_group *in, int c, vf *m)
{
    vf best = { 0 }, signed_best = { 0 };
    for (int i = 0; i < in->n; i++) {
        vf x = LOAD(&in->x[i][c]);
        vi more = ABS(x) > best;
        best = SELECT(more, ABS(x), best);
        signed_best = SELECT(more, x, signed_best);
    }
    *m = signed_best;
}

/* A = sum w x q and B = sum w q q for the levels of inverse scale g. */
FN sym_sums(const lane_group *in, int c, int half, const vf *g, vf *A, vf *B)
{
    vf a = { 0 }, b = { 0 };
    for (int i = 0; i < in->n; i++) {
        vf x = LOAD(&in->x[i][c]), w = LOAD(&in->w[i][c]);
        vf q = BOUND(ROUND(*g * x), -half, half - 1);
        a += w * x * q;
        b += w * q * q;
    }
    *A = a;
    *B = b;
}

FN sym_levels(const lane_group *in, int c, int half, const vf *g, const vi *zero, lane_fit *fit)
{
    for (int i = 0; i < in->n; i++) {
        vf q = BOUND(ROUND(*g * LOAD(&in->x[i][c])), -half, half - 1);
        STORE(&fit->q[i][c], SELECT(*zero, ALL(-half), q));
    }
}

FN fit_sym(const lane_group *in, int half, lane_fit *fit)
{
    for (int c = 0; c < SEARCH_LANES; c += LANES) {
        vf m, A, B;
        lanes_signed_max(in, c, &m);
        vi zero = ABS(m) < ALL(1e-15f);
        vf g = ALL(-half) / m;
        sym_sums(in, c, half, &g, &A, &B);
        vf a = SELECT(B > ALL(0), A / B, ALL(0)), gain = a * A, best = g;
        for (int t = -9; t <= 9; t++) {
            if (t == 0) continue;
            g = ALL(-((float)half + 0.1f * (float)t)) / m;
            sym_sums(in, c, half, &g, &A, &B);
            vi better = (B > ALL(0)) & (A * A > gain * B);
            a = SELECT(better, A / B, a);
            gain = SELECT(better, a * A, gain);
            best = SELECT(better, g, best);
        }
        sym_levels(in, c, half, &best, &zero, fit);
        STORE(&fit->a[c], SELECT(zero, ALL(0), a));
    }
}

FN fit_sym_descent(const lane_group *in, int half, lane_fit *fit)
{
    for (int c = 0; c < SEARCH_LANES; c += LANES) {
        vf m, A, B;
        lanes_signed_max(in, c, &m);
        vi zero = ABS(m) < ALL(1e-15f);
        vf g = ALL(-half) / m;
        sym_sums(in, c, half, &g, &A, &B);
        sym_levels(in, c, half, &g, &zero, fit);
        for (int pass = 0; pass < 5; pass++) {
            vi any = { 0 };
            for (int i = 0; i < in->n; i++) {
                vf x = LOAD(&in->x[i][c]), w = LOAD(&in->w[i][c]), q = LOAD(&fit->q[i][c]);
                vf a0 = A - w * x * q, b0 = B - w * q * q;
                vf q1 = BOUND(ROUND(x * b0 / a0), -half, half - 1);
                vf a1 = a0 + w * x * q1, b1 = b0 + w * q1 * q1;
                vi better = ~zero & (a0 > ALL(0)) & (q1 != q) & (b1 > ALL(0)) & (a1 * a1 * B > A * A * b1);
                STORE(&fit->q[i][c], SELECT(better, q1, q));
                A = SELECT(better, a1, A);
                B = SELECT(better, b1, B);
                any |= better;
            }
            int changed = 0;
            for (int l = 0; l < LANES; l++) changed |= any[l];
            if (!changed) break;
        }
        STORE(&fit->a[c], SELECT(~zero & (B > ALL(0)), A / B, ALL(0)));
    }
}

/* Levels of inverse scale g and origin lo, with the sums P = w q, Q = w q q, R = w q x. */
typedef struct min_try {
    vf g, lo, a, b, P, Q, R, q[32];
} min_try;

FN min_levels(const lane_group *in, int c, int max, min_try *t)
{
    vf P = { 0 }, Q = { 0 }, R = { 0 }, g = t->g, lo = t->lo;
    for (int i = 0; i < in->n; i++) {
        vf x = LOAD(&in->x[i][c]), w = LOAD(&in->w[i][c]);
        vf q = BOUND(ROUND(g * (x - lo)), 0, max);
        P += w * q;
        Q += w * q * q;
        R += w * q * x;
        t->q[i] = q;
    }
    t->P = P;
    t->Q = Q;
    t->R = R;
}

FN min_error(const lane_group *in, int c, bool absolute, const min_try *t, vf *error)
{
    vf sum = { 0 }, a = t->a, b = t->b;
    for (int i = 0; i < in->n; i++) {
        vf e = a * t->q[i] + b - LOAD(&in->x[i][c]);
        sum += LOAD(&in->w[i][c]) * (absolute ? ABS(e) : e * e);
    }
    *error = sum;
}

/* One vector of groups. Of *best, g and lo give the first candidate; returned are g, lo, a and b of the best. */
FN min_search(const lane_group *in, int c, const min_rule *rule, vf hi, min_try *best)
{
    vf W = { 0 }, X = { 0 }, error, e;
    for (int i = 0; i < in->n; i++) {
        vf w = LOAD(&in->w[i][c]);
        W += w;
        X += w * LOAD(&in->x[i][c]);
    }
    min_levels(in, c, rule->max, best);
    best->a = ALL(1) / best->g;
    best->b = best->lo;
    min_error(in, c, rule->absolute, best, &error);
    min_try t;
    for (int k = 0; k <= rule->steps; k++) {
        t.lo = best->b; /* an adopted minimum is the origin of the candidates that follow */
        t.g = ALL(rule->first + rule->step * (float)k + (float)rule->max) / (hi - t.lo);
        min_levels(in, c, rule->max, &t);
        vf D = W * t.Q - t.P * t.P;
        t.a = (W * t.R - X * t.P) / D;
        t.b = (t.Q * X - t.P * t.R) / D;
        vi positive = t.b > ALL(0);
        t.a = SELECT(positive, t.R / t.Q, t.a);
        t.b = SELECT(positive, ALL(0), t.b);
        min_error(in, c, rule->absolute, &t, &e);
        vi better = (D > ALL(0)) & (e < error);
        error = SELECT(better, e, error);
        best->g = SELECT(better, t.g, best->g);
        best->lo = SELECT(better, t.lo, best->lo);
        best->a = SELECT(better, t.a, best->a);
        best->b = SELECT(better, t.b, best->b);
    }
}

FN fit_min(const lane_group *in, const min_rule *rule, lane_fit *fit)
{
    for (int c = 0; c < SEARCH_LANES; c += LANES) {
        vf lo = LOAD(&in->x[0][c]), hi = lo;
        for (int i = 1; i < in->n; i++) {
            lo = LOWER(LOAD(&in->x[i][c]), lo);
            hi = UPPER(LOAD(&in->x[i][c]), hi);
        }
        lo = SELECT(lo > ALL(0), ALL(0), lo);
        vi flat = hi == lo;
        min_try best;
        best.g = ALL(rule->max) / (hi - lo);
        best.lo = lo;
        min_search(in, c, rule, hi, &best);
        for (int i = 0; i < in->n; i++) {
            vf q = BOUND(ROUND(best.g * (LOAD(&in->x[i][c]) - best.lo)), 0, rule->max);
            STORE(&fit->q[i][c], SELECT(flat, ALL(0), q));
        }
        STORE(&fit->a[c], SELECT(flat, ALL(0), best.a));
        STORE(&fit->b[c], SELECT(flat, lo, best.b));
    }
}

/* A and B as in sym_sums for the levels of iq4_levels nearest to g x. */
FN iq4_sums(const lane_group *in, int c, const vf *g, vf *A, vf *B)
{
    vf a = { 0 }, b = { 0 };
    for (int i = 0; i < in->n; i++) {
        vf x = LOAD(&in->x[i][c]), w = LOAD(&in->w[i][c]), u = *g * x, q;
        IQ4_NEAR(u, q);
        a += w * q * x;
        b += w * q * q;
    }
    *A = a;
    *B = b;
}

FN fit_iq4(const lane_group *in, lane_fit *fit)
{
    for (int c = 0; c < SEARCH_LANES; c += LANES) {
        vf m, A, B;
        lanes_signed_max(in, c, &m);
        vf g = ALL(1) / (m / ALL(-iq4_levels[0]));
        iq4_sums(in, c, &g, &A, &B);
        vf a = A / B, gain = a * A;
        for (int t = -7; t <= 7; t++) {
            g = ALL(t + iq4_levels[0]) / m;
            iq4_sums(in, c, &g, &A, &B);
            vi better = (B > ALL(0)) & (A * A > gain * B);
            a = SELECT(better, A / B, a);
            gain = SELECT(better, a * A, gain);
        }
        STORE(&fit->a[c], SELECT(ABS(m) < ALL(1e-15f), ALL(0), a));
    }
}
