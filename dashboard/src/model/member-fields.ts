import { affinitySchema, memberSchema } from '../../../src/contract/config/members.ts';
import { isSame, type EditedDocument } from './document.ts';
import type { FieldError } from './field-errors.ts';
import { fieldsOf } from './schema-fields.ts';

type FieldLabels = Readonly<Record<string, string>>;

/** Labels of what nearly every member says, by the paths of its fields. A test holds both lists against the schema. */
export const MEMBER_FIELDS: FieldLabels = {
  upstream: 'Upstream',
  secret: 'Secret',
  'limits.max_concurrency': 'Slots',
  weight: 'Weight',
  tier: 'Tier',
  enabled: 'Enabled',
};

/** Labels of the rest. */
export const MORE_MEMBER_FIELDS: FieldLabels = {
  name: 'Name of the member',
  models: 'Models there',
  first_token_ms: 'Time to first token',
  'limits.rpm': 'Its requests per minute',
  'limits.tpm': 'Its tokens per minute',
  'limits.itpm': 'Its input tokens per minute',
  'limits.otpm': 'Its output tokens per minute',
  'limits.rpd': 'Its requests per day',
  'limits.tpd': 'Its tokens per day',
  'limits.starts_per_s': 'Its starts per second',
  'limits.burst': 'Its burst',
  'limits.budget_usd.per_hour': 'Its budget per hour',
  'limits.budget_usd.per_day': 'Its budget per day',
  'limits.budget_usd.per_month': 'Its budget per month',
  'limits.budget_usd.fallback_price': 'Its fallback price',
};

export const AFFINITY_FIELDS: FieldLabels = {
  by: 'Kept by',
  for: 'Kept for',
  wait: 'Longest wait for it',
};

export const FIELDS_OF_MEMBER = new Map(fieldsOf(memberSchema).map((field) => [field.path, field]));
export const FIELDS_OF_AFFINITY = new Map(
  fieldsOf(affinitySchema).map((field) => [field.path, field]),
);

/** The members in a draft, which may be anything that somebody has typed. */
export function membersIn(value: unknown): readonly EditedDocument[] {
  return Array.isArray(value) ? value.map((each: unknown) => Object(each) as EditedDocument) : [];
}

const MEMBER: EditedDocument = memberSchema.parse({ upstream: '-' });

/** A member to begin with: where the last one is, or where most calls go. */
export function newMember(
  members: readonly EditedDocument[],
  upstreams: readonly string[],
): EditedDocument {
  const upstream = members.at(-1)?.['upstream'] ?? upstreams[0] ?? '';
  return { ...MEMBER, upstream };
}

/** The list with one of it at another place. */
export function moved<Item>(items: readonly Item[], from: number, to: number): readonly Item[] {
  const item = items[from];
  return item === undefined ? items : items.toSpliced(from, 1).toSpliced(to, 0, item);
}

/** Errors of a part of a document, by their paths within it. */
export function errorsWithin(errors: readonly FieldError[], path: string): readonly FieldError[] {
  return errors.flatMap((error) =>
    error.path.startsWith(`${path}.`) ? { ...error, path: error.path.slice(path.length + 1) } : [],
  );
}

const AFFINITY: EditedDocument = affinitySchema.parse({});

/** An affinity with every default. */
export function affinityIn(value: unknown): EditedDocument {
  return { ...AFFINITY, ...(Object(value) as EditedDocument) };
}

/** The affinity to be written: null says what the defaults say, and means nothing wrong without members. */
export function affinityFrom(typed: EditedDocument): EditedDocument | null {
  return isSame(typed, AFFINITY) ? null : typed;
}
