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
