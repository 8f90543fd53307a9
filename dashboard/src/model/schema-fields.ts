import * as z from 'zod';

/** How a field is entered, as far as its schema tells. */
export type FieldKind =
  | {
      readonly type: 'number';
      readonly min: number;
      readonly max: number;
      readonly isWhole: boolean;
      /** The field takes the word `auto` too. */
      readonly takesAuto: boolean;
    }
  | { readonly type: 'switch' }
  | { readonly type: 'choice'; readonly options: readonly string[] }
  /** A list of texts; `words` are those that the schema names. */
  | { readonly type: 'list'; readonly words: readonly string[] }
  /** Numbers by name, or texts. */
  | { readonly type: 'pairs'; readonly isOfTexts: boolean }
  | { readonly type: 'text' }
  | { readonly type: 'instant' }
  /** Has a shape of its own, and a control of its own. */
  | { readonly type: 'special' };

/** One field of a document that a form can show. */
export interface SchemaField {
  /** As in `limits.max_concurrency`. */
  readonly path: string;
  readonly kind: FieldKind;
  readonly isNullable: boolean;
  /** It may be left out, and has no default then. */
  readonly isOptional: boolean;
  /** Default where nothing is given. Undefined: it must be given. */
  readonly fallback: unknown;
  /** Description for somebody who fills in a form. */
  readonly help: string;
  readonly unit: string | undefined;
}

/** The fields of a schema in its own order. Objects are taken apart, unless they may be null. */
export function fieldsOf(schema: z.ZodObject, base = ''): SchemaField[] {
  return Object.entries(schema.shape).flatMap(([name, each]) => {
    const path = base === '' ? name : `${base}.${name}`;
    const { inner, isNullable, isOptional, fallback, said } = unwrap(each);
    if (inner instanceof z.ZodObject && !isNullable) return fieldsOf(inner, path);
    const kind = kindOf(inner);
    const unit = typeof said['unit'] === 'string' ? said['unit'] : undefined;
    const help = helpOf(said.description ?? '', kind);
    return [{ path, kind, isNullable, isOptional, fallback, help, unit }];
  });
}

function unwrap(schema: z.core.$ZodType) {
  let inner = schema;
  let isNullable = false;
  let isOptional = false;
  let fallback: unknown;
  let said: z.core.GlobalMeta = {};
  for (;;) {
    said = { ...z.globalRegistry.get(inner), ...said };
    if (inner instanceof z.ZodDefault || inner instanceof z.ZodPrefault) {
      fallback ??= inner.def.defaultValue;
    } else if (inner instanceof z.ZodNullable) {
      isNullable = true;
    } else if (inner instanceof z.ZodOptional) {
      isOptional = true;
    } else {
      fallback ??= isNullable ? null : undefined;
      return { inner, isNullable, isOptional, fallback, said };
    }
    inner = inner.unwrap();
  }
}

/** In a form nobody writes `null`: a field is left empty, or `none` is chosen. */
function helpOf(description: string, { type }: FieldKind): string {
  const isChosen = type === 'choice' || type === 'special';
  const isLeftOut = description.includes('Absent:');
  return description
    .replace(isLeftOut ? 'Absent:' : 'Null:', isChosen ? 'None:' : 'Empty:')
    .replaceAll('`', '');
}

function kindOf(schema: z.core.$ZodType): FieldKind {
  if (schema instanceof z.ZodNumber) return numberKind(schema, false);
  if (schema instanceof z.ZodBoolean) return { type: 'switch' };
  if (schema instanceof z.ZodEnum) return { type: 'choice', options: schema.options.map(String) };
  if (schema instanceof z.ZodRecord) {
    return { type: 'pairs', isOfTexts: schema.valueType instanceof z.ZodString };
  }
  if (schema instanceof z.ZodISODateTime) return { type: 'instant' };
  if (schema instanceof z.ZodString) return { type: 'text' };
  if (schema instanceof z.ZodArray) {
    const parts = schema.element instanceof z.ZodUnion ? schema.element.options : [schema.element];
    const isOfTexts = parts.every(
      (part) => part instanceof z.ZodString || part instanceof z.ZodEnum,
    );
    const words = parts.flatMap((part) =>
      part instanceof z.ZodEnum ? part.options.map(String) : [],
    );
    return isOfTexts ? { type: 'list', words } : { type: 'special' };
  }
  if (schema instanceof z.ZodUnion) {
    const [word, number] = schema.options;
    if (word instanceof z.ZodLiteral && word.value === 'auto' && number instanceof z.ZodNumber) {
      return numberKind(number, true);
    }
  }
  return { type: 'special' };
}

function numberKind(schema: z.ZodNumber, takesAuto: boolean): FieldKind {
  return {
    type: 'number',
    min: schema.minValue ?? -Infinity,
    max: schema.maxValue ?? Infinity,
    isWhole: schema instanceof z.ZodNumberFormat,
    takesAuto,
  };
}
