import * as z from 'zod';
import { invalid } from './route.ts';
import { settingsOf } from '../routing/implied-groups.ts';
import type { TemporaryOrder } from '../contract/rpc/directory-rpc.ts';
import type { Config, GroupConfig } from '../contract/config/config.ts';
import { fieldsBetween } from '../config/document-changes.ts';

/** Maximum duration of a temporary change: a month. */
export const FOR_S_MAX = 31 * 86_400;

const untilField = z.iso
  .datetime({ error: 'expected a UTC time such as 2026-11-20T10:00:00Z' })
  .optional()
  .describe(
    'Time at which the change reverts automatically, in UTC, at most a month ahead. Absent means that it is permanent, unless `for_s` is given.',
  );

const FOR_S = {
  description: 'Duration after which the change reverts, in place of `until`.',
  unit: 's',
};

export const untilQuery = z.strictObject({
  until: untilField,
  for_s: z.coerce.number().int().min(1).max(FOR_S_MAX).optional().meta(FOR_S),
});

/** Body of a change that can be temporary and has no other fields. */
export const untilSchema = z.strictObject({
  until: untilField,
  for_s: z.int().min(1).max(FOR_S_MAX).optional().meta(FOR_S),
});

/** Maximum fields of a temporary change, and characters of all their values. Each field is stored in its own row. */
const FIELDS_MAX = 50;

const CHARACTERS_MAX = 64_000;

export interface ChangeSpan {
  /** Epoch milliseconds. null if it is permanent. */
  readonly until: number | null;
}

/** Duration of a change of a group, for the directory and the audit log. */
export interface TemporaryChange {
  /** Suffix for the audit log, such as ` until 2026-11-20T10:00:00.000Z`. */
  readonly words: string;
  readonly orders: (before: Config, next: Config) => readonly TemporaryOrder[];
}

export function spanOf({ until, for_s: forS }: z.output<typeof untilSchema>): ChangeSpan {
  if (until === undefined && forS === undefined) return { until: null };
  if (until !== undefined && forS !== undefined) {
    throw invalid([{ path: 'for_s', message: 'cannot be combined with `until`' }]);
  }
  const now = Date.now();
  const at = until === undefined ? now + (forS ?? 0) * 1_000 : Date.parse(until);
  if (at <= now) throw invalid([{ path: 'until', message: 'expected a time in the future' }]);
  if (at > now + FOR_S_MAX * 1_000) {
    throw invalid([{ path: 'until', message: 'expected a time within 31 days' }]);
  }
  return { until: at };
}

/**
 * Creates the orders for a change of a group's settings: for the fields that it changes, and for those that it names.
 *
 * @param entry new entry of an automatic group, to which it reverts
 */
export function lasting(
  group: string,
  { until }: ChangeSpan,
  named: readonly (readonly string[])[],
  entry?: GroupConfig,
): TemporaryChange {
  const orders = (before: Config, next: Config): TemporaryOrder[] => {
    const was = entry ?? before.groups.find(({ name }) => name === group);
    if (until !== null && was === undefined) throw invalid([NOTHING_BEFORE]);
    const changed = [...fieldsBetween(was, settingsOf(next, group))];
    const paths = new Set(changed.map(({ path }) => path.join('\n')));
    const others = named.filter((path) => !paths.has(path.join('\n')));
    if (until === null) return [{ group, until, fields: [], named: others }];
    if (changed.length > FIELDS_MAX || JSON.stringify(changed).length > CHARACTERS_MAX) {
      throw invalid([TOO_MUCH]);
    }
    const fields = changed.map(({ path, from, to }) => ({ path, was: from, value: to }));
    return [{ group, until, fields, named: others }];
  };
  return { words: wordsOf(until), orders };
}

/** The same for switches. They are off when the time ends, even if they were on before without an end. */
export function lastingSwitches(
  group: string,
  { until }: ChangeSpan,
  switches: Readonly<Record<string, boolean>>,
): TemporaryChange {
  const named = Object.keys(switches).map((field) => [field]);
  const fields = until === null ? [] : named.map((path) => ({ path, was: false, value: true }));
  return { words: wordsOf(until), orders: () => [{ group, until, fields, named }] };
}

export function namedIn(patch: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return [path];
  return Object.entries(patch).flatMap(([name, part]) => namedIn(part, [...path, name]));
}

const NOTHING_BEFORE = {
  path: 'until',
  message: 'cannot be used with a new group, which has no earlier values to revert to',
};

const TOO_MUCH = {
  path: 'until',
  message: `a temporary change can have at most ${FIELDS_MAX} fields, and ${CHARACTERS_MAX} characters in their values`,
};

function wordsOf(until: number | null): string {
  return until === null ? '' : ` until ${new Date(until).toISOString()}`;
}
