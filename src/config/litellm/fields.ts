/** Fields of a document that may be of any kind. */
export type Fields = Readonly<Record<string, unknown>>;

/** Takes the fields of a value. Empty: it is no object. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Fields)
    : {};
}

/** Reads text that is a number as LiteLLM does, which also takes `1_000`. Any other value stays as it is. */
export function withoutQuotes(value: unknown): unknown {
  const isNumber =
    typeof value === 'string' && /^\s*[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:e[-+]?\d+)?\s*$/i.test(value);
  return isNumber ? Number(value.replaceAll('_', '')) : value;
}

/** Takes the entries of a list. Empty: it is none. */
export function entriesOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}
