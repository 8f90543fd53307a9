/** Fields that belong together, in the order in which they are shown. */
export interface FieldSection {
  readonly id: string;
  readonly title: string;
  readonly help: string;
  /** Labels by path. Everything else that a form says of a field comes from the schema. */
  readonly fields: Readonly<Record<string, string>>;
}

/** Fields with a shape of their own, which have a control of their own. */
const SPECIAL_PATHS = [
  'queue.lane_rules',
  'fairness.by',
  'on_saturated',
  'on_unavailable',
  'limits.budget_usd.fallback_price',
] as const;

export type SpecialPath = (typeof SPECIAL_PATHS)[number];

/** Whether a field has a control of its own. */
export function isSpecial(path: string): path is SpecialPath {
  return SPECIAL_PATHS.some((each) => each === path);
}

/** Fields that are documents of their own, which a form shows by their fields. */
const NESTED_PATHS = ['members', 'affinity'] as const;

type NestedPath = (typeof NESTED_PATHS)[number];

/** Whether a field is shown by its own fields. */
export function isNested(path: string): path is NestedPath {
  return NESTED_PATHS.some((each) => each === path);
}
