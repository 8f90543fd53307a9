import * as z from 'zod';

export type FieldKind =
  | {
      readonly type: 'number';
      readonly min: number;
      readonly max: number;
      readonly isWhole: boolean;
      /** Whether the field also accepts `auto`. */
      readonly takesAuto: boolean;
    }
  | { readonly type: 'switch' }
  | { readonly type: 'choice'; readonly options: readonly string[] }
  /** A list of texts. `words` are values that the schema names. */
  | { readonly type: 'list'; readonly words: readonly string[] }
  /** A record of numbers or texts. */
  | { readonly type: 'pairs'; readonly isOfTexts: boolean }
  | { readonly type: 'text' }
  | { readonly type: 'instant' }
  | { readonly type: 'special' };

export interface SchemaField {
  /** Such as `limits.max_concurrency`. */
  readonly path: string;
  readonly kind: FieldKind;
  readonly isNullable: boolean;
  /** Whether the field may be absent without a default. */
  readonly isOptional: boolean;
  /** Default. undefined if the field is required. */
  readonly fallback: unknown;
  readonly help: string;
  readonly unit: string | undefined;
}

/** Fields of a schema in its order. Objects are flattened unless they are nullable. */
export function fieldsOf(schema: z.ZodObject, base = ''): SchemaField[] {
  return Object.entries(schema.shape).flatMap(([name, each]) => {
    const path = base === '' ? name : `${base}.${name}`;
    const { inner, isNullable, isOptional, fallback, meta } = unwrap(each);
    if (inner instanceof z.ZodObject && !isNullable) return fieldsOf(inner, path);
    const kind = kindOf(inner);
    const unit = typeof meta['unit'] === 'string' ? meta['unit'] : undefined;
    const help = helpOf(meta.description ?? '', kind);
    return [{ path, kind, isNullable, isOptional, fallback, help, unit }];
  });
}

function unwrap(schema: z.core.$ZodType) {
  let inner = schema;
  let isNullable = false;
  let isOptional = false;
  let fallback: unknown;
  let meta: z.core.GlobalMeta = {};
  for (;;) {
    meta = { ...z.globalRegistry.get(inner), ...meta };
    if (inner instanceof z.ZodDefault || inner instanceof z.ZodPrefault) {
      fallback ??= inner.def.defaultValue;
    } else if (inner instanceof z.ZodNullable) {
      isNullable = true;
    } else if (inner instanceof z.ZodOptional) {
      isOptional = true;
    } else {
      fallback ??= isNullable ? null : undefined;
      return { inner, isNullable, isOptional, fallback, meta };
    }
    inner = inner.unwrap();
  }
}

/** Forms have no `null`: a field is left empty, or `none` is chosen. */
function helpOf(description: string, { type }: FieldKind): string {
  const isChosen = type === 'choice' || type === 'special';
  const word = /\bAbsent\b/.test(description) ? /\bAbsent\b/ : /\bnull\b/i;
  return description.replace(word, isChosen ? 'None' : 'Empty').replaceAll('`', '');
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
