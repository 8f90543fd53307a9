import { affinitySchema, memberSchema } from '../../../src/contract/config/members.ts';
import { isSame, type EditedDocument } from './document.ts';
import type { FieldError } from './field-errors.ts';
import { fieldsOf } from './schema-fields.ts';

type FieldLabels = Readonly<Record<string, string>>;

/** Labels of the common fields of a member, by path. A test compares both lists with the schema. */
export const MEMBER_FIELDS: FieldLabels = {
  upstream: 'Upstream',
  secret: 'Secret',
  'limits.max_concurrency': 'Slots',
  weight: 'Weight',
  tier: 'Tier',
  enabled: 'Enabled',
};

export const MORE_MEMBER_FIELDS: FieldLabels = {
  name: 'Member name',
  models: 'Models at this member',
  first_token_ms: 'Time to first token',
  'limits.rpm': 'Member  requests per minute',
  'limits.tpm': 'Member  tokens per minute',
  'limits.itpm': 'Member  input tokens per minute',
  'limits.otpm': 'Member  output tokens per minute',
  'limits.rpd': 'Member  requests per day',
  'limits.tpd': 'Member  tokens per day',
  'limits.starts_per_s': 'Member  starts per second',
  'limits.burst': 'Member  burst',
  'limits.budget_usd.per_hour': 'Member  budget per hour',
  'limits.budget_usd.per_day': 'Member  budget per day',
  'limits.budget_usd.per_month': 'Member  budget per month',
  'limits.budget_usd.fallback_price': 'Member  fallback price',
};

export const AFFINITY_FIELDS: FieldLabels = {
  by: 'Affinity by',
  for: 'Affinity duration',
  wait: 'Longest wait for the preferred member',
};

export const FIELDS_OF_MEMBER = new Map(fieldsOf(memberSchema).map((field) => [field.path, field]));
export const FIELDS_OF_AFFINITY = new Map(
  fieldsOf(affinitySchema).map((field) => [field.path, field]),
);

/** Members of a draft, which may contain invalid input. */
export function membersIn(value: unknown): readonly EditedDocument[] {
  return Array.isArray(value) ? value.map((each: unknown) => Object(each) as EditedDocument) : [];
}

const MEMBER: EditedDocument = memberSchema.parse({ upstream: '-' });

/** A new member. Its upstream is that of the last member, or the most used one. */
export function newMember(
  members: readonly EditedDocument[],
  upstreams: readonly string[],
): EditedDocument {
  const upstream = members.at(-1)?.['upstream'] ?? upstreams[0] ?? '';
  return { ...MEMBER, upstream };
}

export function moved<Item>(items: readonly Item[], from: number, to: number): readonly Item[] {
  const item = items[from];
  return item === undefined ? items : items.toSpliced(from, 1).toSpliced(to, 0, item);
}

/** Errors of a part of a document, with paths relative to that part. */
export function errorsWithin(errors: readonly FieldError[], path: string): readonly FieldError[] {
  return errors.flatMap((error) =>
    error.path.startsWith(`${path}.`) ? { ...error, path: error.path.slice(path.length + 1) } : [],
  );
}

const AFFINITY: EditedDocument = affinitySchema.parse({});

export function affinityIn(value: unknown): EditedDocument {
  return { ...AFFINITY, ...(Object(value) as EditedDocument) };
}

/** The affinity to save. null means the defaults, which are also valid without members. */
export function affinityFrom(typed: EditedDocument): EditedDocument | null {
  return isSame(typed, AFFINITY) ? null : typed;
}
