/** A field of a group with a temporary value. Undefined values mean that the field is absent. */
export interface TemporaryField {
  /** Name of the group, which may be automatic. */
  readonly group: string;
  readonly path: readonly string[];
  /** Value to which it reverts. */
  readonly was?: unknown;
  readonly value?: unknown;
  /** Epoch milliseconds. */
  readonly until: number;
  readonly actor: string;
}

export interface TemporaryOrder {
  readonly group: string;
  /** Time at which it reverts, in epoch milliseconds. null if it is permanent. */
  readonly until: number | null;
  /** Fields that it changes temporarily. Empty if it is permanent. */
  readonly fields: readonly Pick<TemporaryField, 'path' | 'was' | 'value'>[];
  /** Fields that already have the given value. Their end changes, or is removed so that they become permanent. */
  readonly named: readonly (readonly string[])[];
}
