import { isKeyLike } from '../../../../src/config/own-config.ts';
import type { FieldError } from '../../../../src/config/field-error.ts';
import type { ConfigInput } from '../../../../src/contract/config/config.ts';

export type UnknownFields = Readonly<Record<string, unknown>>;

/** Returns the fields of a value. Empty if it is not an object. */
export function fieldsOf(value: unknown): UnknownFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as UnknownFields)
    : {};
}

/** Whether a field has an effect: it is neither off nor empty. */
export function isStated(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0;
  return value !== undefined && value !== null && value !== false && value !== '';
}

/** Returns the entries of a list. Empty if it is not a list. */
export function entriesOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

const PREFIX = 'os.environ/';

/** Returns the value of a variable that a document may use in place of any value. */
export type Environment = (name: string) => string | undefined;

/** Reads variables as LiteLLM does: those in the document take precedence. */
export function environmentOf(
  document: unknown,
  outside: Readonly<Record<string, string | undefined>> = {},
): Environment {
  const own = fieldsOf(fieldsOf(document)['environment_variables']);
  return (name) => {
    const set = own[name];
    if (typeof set === 'string' || typeof set === 'number') return String(set);
    return Object.hasOwn(outside, name) ? outside[name] : undefined;
  };
}

/**
 * Returns the variable in place of a value. null if it is a plain value. A key that was written after the prefix by
 * mistake is not a variable, because names of variables are repeated.
 */
export function variableOf(value: unknown): string | null {
  if (typeof value !== 'string' || !value.startsWith(PREFIX)) return null;
  const name = value.slice(PREFIX.length);
  return isKeyLike(name) ? null : name;
}

/** A resolved value, or the name of a variable that is not set. */
type Resolved = { readonly value: unknown } | { readonly missing: string };

/** Resolves a value that may be the name of a variable. The texts `true` and `false` become booleans. */
export function resolveValue(value: unknown, environment: Environment): Resolved {
  const name = variableOf(value);
  if (name === null) return { value };
  const set = environment(name);
  if (set === undefined) return { missing: name };
  return { value: /^(?:true|false)$/i.test(set) ? set.toLowerCase() === 'true' : set };
}

export function missingVariable(name: string): string {
  return `uses the environment variable ${name.slice(0, 64)}, which is not set. Set it where you run headgate import, or write its value`;
}

/** Maximum paths in a message about one field. */
const PLACES_MAX = 3;

export class ImportReport {
  readonly notes = new Set<string>();
  readonly #omitted: FieldError[] = [];
  /** Paths of a field that many entries have, by message. */
  readonly #repeated = new Map<string, string[]>();

  omit(path: string, message: string): void {
    this.#omitted.push({ path, message });
  }

  /** Records an omitted part, once for all entries with the same field. */
  omitField(path: string, field: string, message: string): void {
    const key = `${field}\n${message}`;
    this.#repeated.set(key, [...(this.#repeated.get(key) ?? []), path]);
  }

  omitted(): FieldError[] {
    const repeated = [...this.#repeated].map(([key, [path = '', ...others]]) => {
      const [, message = ''] = key.split('\n');
      if (others.length === 0) return { path, message };
      const named = others.slice(0, PLACES_MAX - 1).join(', ');
      const more = others.length - (PLACES_MAX - 1);
      const rest = more > 0 ? ` and ${more} more` : '';
      return { path, message: `${message} (also in ${named}${rest})` };
    });
    return [...this.#omitted, ...repeated];
  }
}

type BudgetInput = NonNullable<
  NonNullable<NonNullable<ConfigInput['groups']>[number]['limits']>['budget_usd']
>;

export interface ConvertedBudget {
  readonly budget: BudgetInput;
  /** Absent if it is the same. */
  readonly note?: string;
}

const HOUR_S = 3_600;
const DAY_S = 24 * HOUR_S;
const MONTH_S = 30 * DAY_S;

const UNIT_S: Readonly<Record<string, number>> = {
  s: 1,
  m: 60,
  h: HOUR_S,
  d: DAY_S,
  w: 7 * DAY_S,
  mo: MONTH_S,
};

/** Periods of budgets in Headgate, the longest first. */
const PERIODS = [
  { field: 'per_month', name: 'month', seconds: MONTH_S },
  { field: 'per_day', name: 'day', seconds: DAY_S },
  { field: 'per_hour', name: 'hour', seconds: HOUR_S },
] as const;

/**
 * Converts a budget for any period to a period of Headgate, so that no more is spent in the original period. null if it
 * has no period or an invalid one.
 */
export function budgetOf(usd: number, duration: string | undefined): ConvertedBudget | null {
  if (duration === undefined) return null;
  const [, amount, unit = ''] = /^(\d{1,6})\s*(s|m|h|d|w|mo)$/.exec(duration.trim()) ?? [];
  const seconds = Number(amount) * (UNIT_S[unit] ?? Number.NaN);
  if (!(seconds > 0)) return null;
  const period = PERIODS.find((each) => each.seconds <= seconds) ?? PERIODS[2];
  const parts = Math.max(1, seconds / period.seconds);
  // Rounded down, so that all parts together do not exceed the whole.
  const part = Math.floor((usd / parts) * 1e6) / 1e6;
  const budget = { [period.field]: part };
  if (seconds === period.seconds) return { budget };
  const written = `${usd} USD in ${duration.trim()}`;
  return { budget, note: `The budget of ${written} became ${part} USD per ${period.name}` };
}

export function whyNoBudget(duration: unknown): string {
  if (duration === undefined || duration === null) {
    return 'has no period, so it never resets, and Headgate has budgets per hour, day or month only. Set a period, as in 30d';
  }
  return 'has an invalid period. Write it as in 30d';
}

/** Divides a budget among members that each count separately. */
export function sharedBudget(budget: BudgetInput, places: number): BudgetInput {
  if (places === 1) return budget;
  return Object.fromEntries(
    Object.entries(budget).map(([field, usd]) => [
      field,
      typeof usd === 'number' ? Math.floor((usd / places) * 1e6) / 1e6 : usd,
    ]),
  );
}

/** Returns the stricter of two budgets in each period. */
export function stricterBudget(one: BudgetInput, two: BudgetInput): BudgetInput {
  const fields = PERIODS.map(({ field }) => {
    const both = [one[field], two[field]].filter((usd) => typeof usd === 'number');
    return [field, both.length === 0 ? undefined : Math.min(...both)] as const;
  });
  return Object.fromEntries(fields.filter(([, usd]) => usd !== undefined));
}
