/** A section of a form. Its fields are shown in this order. */
export interface FieldSection {
  readonly id: string;
  readonly title: string;
  readonly help: string;
  /** Labels by path. All other texts of a field come from the schema. */
  readonly fields: Readonly<Record<string, string>>;
}

const SPECIAL_PATHS = [
  'queue.lane_rules',
  'fairness.by',
  'on_saturated',
  'on_unavailable',
  'limits.budget_usd.fallback_price',
] as const;

export type SpecialPath = (typeof SPECIAL_PATHS)[number];

export function isSpecial(path: string): path is SpecialPath {
  return SPECIAL_PATHS.some((each) => each === path);
}

/** Fields that are documents. A form shows their fields. */
const NESTED_PATHS = ['members', 'affinity'] as const;

type NestedPath = (typeof NESTED_PATHS)[number];

export function isNested(path: string): path is NestedPath {
  return NESTED_PATHS.some((each) => each === path);
}
