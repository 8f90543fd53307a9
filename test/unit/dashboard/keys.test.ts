import { describe, expect, it } from 'vitest';
import { adminKeyDocumentSchema, keyDocumentSchema } from '../../../src/contract/config/keys.ts';
import { KEY_ROUTES } from '../../../src/admin/resources/keys.ts';
import { gatewayKeySchema } from '../../../src/contract/config/keys.ts';
import { withValue } from '../../../dashboard/src/model/document.ts';
import { check } from '../../../dashboard/src/model/field-errors.ts';
import { isSpecial } from '../../../dashboard/src/model/field-words.ts';
import { ADMIN_KEY_FIELDS, KEY_SECTIONS } from '../../../dashboard/src/model/key-fields.ts';
import {
  adminKeySnippet,
  BLANK_KEY,
  GRACES,
  keyDocument,
  keyPatch,
  keySnippet,
  limitsText,
  rotations,
  type Key,
} from '../../../dashboard/src/model/keys.ts';
import { fieldsOf } from '../../../dashboard/src/model/schema-fields.ts';

const {
  hash: _hash,
  previous: _previous,
  ...reported
} = gatewayKeySchema.parse({
  id: 'team-search',
  hash: `sha256:${'0'.repeat(64)}`,
});
const KEY: Key = { ...reported, state: 'active', previous_expires_at: null };

describe('the form of a key', () => {
  const fields = fieldsOf(keyDocumentSchema);

  it('has every field of the schema once, and no other', () => {
    const shown = KEY_SECTIONS.flatMap((section) => Object.keys(section.fields));
    expect(shown.toSorted()).toEqual(fields.map(({ path }) => path).toSorted());
  });

  it('has a control for every field', () => {
    const special = fields.filter(({ kind }) => kind.type === 'special');
    expect(special.filter(({ path }) => !isSpecial(path))).toEqual([]);
  });

  it('of the admin API has every field too', () => {
    const paths = fieldsOf(adminKeyDocumentSchema).map(({ path }) => path);
    expect(Object.keys(ADMIN_KEY_FIELDS)).toEqual(paths);
  });

  it.each([
    ['id', '', 'expected 1 to 64 of a-z, 0-9, dot, dash, underscore, got the text ""'],
    ['id', 'Team A', 'expected 1 to 64 of a-z, 0-9, dot, dash, underscore, got the text "Team A"'],
    ['note', 'x'.repeat(201), 'expected at most 200 characters, got a text of 201 characters'],
    ['weight', 0, 'expected at least 0.01, got 0'],
    ['weight', 'two', 'expected a number, got a text of 3 characters'],
    ['limits.rpm', -1, 'expected at least 0, got -1'],
    ['limits.max_concurrency', 1.5, 'expected a whole number, got 1.5'],
    [
      'expires_at',
      'soon',
      'expected an instant like 2026-11-20T10:00:00Z, got a text of 4 characters',
    ],
    ['lane_max', 'top', 'expected one of "high", "normal", "low", got a text of 3 characters'],
  ])('says what is wrong with %s: %j', (path, value, message) => {
    const good = { ...BLANK_KEY, id: 'team-search' };
    expect(check(keyDocumentSchema, good).ok).toBe(true);
    expect(check(keyDocumentSchema, withValue(good, path, value))).toEqual({
      ok: false,
      errors: [{ path, message }],
    });
  });
});

describe('a key', () => {
  it('is changed by what people may say of it, and nothing else', () => {
    const document = keyDocument(KEY);
    expect(check(keyDocumentSchema, document)).toMatchObject({ ok: true });
    expect(Object.keys(document)).not.toContain('created_at');
  });

  it('gets the default back of what a form leaves out', () => {
    const { note: _note, ...document } = keyDocument(KEY);
    expect(keyPatch(document)).toEqual({ ...keyDocument(KEY), note: null });
  });

  it('tells its limits in a few words', () => {
    expect(limitsText(KEY)).toBeNull();
    const budget_usd = { ...KEY.limits.budget_usd, per_day: 20 };
    const limits = { ...KEY.limits, max_concurrency: 4, rpm: 1_200, budget_usd };
    expect(limitsText({ limits })).toBe('4 slots, 1.2K req/min, $20/day');
  });

  it('was last rotated when the audit log says so', () => {
    const entries = [
      { action: 'key a: patch', at: '2026-11-20T12:00:00Z' },
      { action: 'key a: rotate', at: '2026-11-20T11:00:00Z' },
      { action: 'key b: rotate', at: '2026-11-20T10:00:00Z' },
      { action: 'key a: rotate', at: '2026-11-19T10:00:00Z' },
    ];
    expect(rotations(entries)).toEqual(
      new Map([
        ['a', '2026-11-20T11:00:00Z'],
        ['b', '2026-11-20T10:00:00Z'],
      ]),
    );
  });

  it('may go on after a rotation only as long as the API allows', () => {
    for (const { ms } of GRACES) {
      expect(KEY_ROUTES.rotateKey.body.safeParse({ grace_ms: ms }).success).toBe(true);
    }
  });

  it('is shown with a command that uses it, at this very address', () => {
    expect(keySnippet('https://gate.example.com', 'hg_1')).toContain(
      "curl https://gate.example.com/openai/v1/chat/completions \\\n  -H 'Authorization: Bearer hg_1'",
    );
    expect(adminKeySnippet('https://gate.example.com', 'hga_1')).toBe(
      "curl https://gate.example.com/admin/api/status \\\n  -H 'Authorization: Bearer hga_1'",
    );
  });
});
