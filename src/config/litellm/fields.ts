/** Fields of a document that may be of any kind. */
export type UnknownFields = Readonly<Record<string, unknown>>;

/** Takes the fields of a value. Empty: it is no object. */
export function fieldsOf(value: unknown): UnknownFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as UnknownFields)
    : {};
}

/** Whether a field says something: it is neither switched off nor empty. */
export function isStated(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0;
  return value !== undefined && value !== null && value !== false && value !== '';
}

/** Takes the entries of a list. Empty: it is none. */
export function entriesOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}
