/** What a form says of a field. Its type, bounds and default come from the schema. */
export interface FieldWords {
  readonly label: string;
  readonly help: string;
  readonly unit?: string;
}

/** Fields that belong together, in the order in which they are shown. */
export interface FieldSection {
  readonly id: string;
  readonly title: string;
  readonly help: string;
  /** By path. */
  readonly fields: Readonly<Record<string, FieldWords>>;
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
