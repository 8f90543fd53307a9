import * as z from 'zod';

/** One field of an object somewhere within a schema. */
export interface WalkedField {
  /** As in `groups[].limits.rpm`. */
  readonly path: string;
  readonly description: string | undefined;
  readonly unit: string | undefined;
  readonly isNumber: boolean;
}

/** Every field of every object within a schema, in its order. */
export function* fieldsWithin(schema: z.core.$ZodType, path = ''): Generator<WalkedField> {
  const inner = unwrapped(schema);
  if (inner instanceof z.ZodObject) {
    for (const [name, field] of Object.entries(inner.shape)) {
      const at = path === '' ? name : `${path}.${name}`;
      yield { path: at, ...saidOf(field), isNumber: isNumber(unwrapped(field)) };
      yield* fieldsWithin(field, at);
    }
  }
  if (inner instanceof z.ZodArray) yield* fieldsWithin(inner.element, `${path}[]`);
  if (inner instanceof z.ZodRecord) yield* fieldsWithin(inner.valueType, `${path}{}`);
  if (inner instanceof z.ZodUnion) {
    for (const each of inner.options) yield* fieldsWithin(each, path);
  }
}

function isNumber(schema: z.core.$ZodType): boolean {
  return (
    schema instanceof z.ZodNumber ||
    (schema instanceof z.ZodRecord && isNumber(schema.valueType)) ||
    (schema instanceof z.ZodUnion && schema.options.some(isNumber))
  );
}

/** The schema of the values themselves, whatever stands for none of them. */
function unwrapped(schema: z.core.$ZodType): z.core.$ZodType {
  const inner = innerOf(schema);
  return inner === null ? schema : unwrapped(inner);
}

function innerOf(schema: z.core.$ZodType): z.core.$ZodType | null {
  const isWrapper =
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodExactOptional;
  return isWrapper ? schema.unwrap() : null;
}

/** Reads what is said of a field, by whichever of its wrappers. */
function saidOf(schema: z.core.$ZodType): Pick<WalkedField, 'description' | 'unit'> {
  const { description, unit } = z.globalRegistry.get(schema) ?? {};
  if (description !== undefined) {
    return { description, unit: typeof unit === 'string' ? unit : undefined };
  }
  const inner = innerOf(schema);
  return inner === null ? { description, unit: undefined } : saidOf(inner);
}
