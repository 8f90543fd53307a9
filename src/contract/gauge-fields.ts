import type * as z from 'zod';
import type { GaugeRow } from './gauges.ts';

type SchemaRow<Shape extends string> = Pick<
  GaugeRow<Shape>,
  'shape' | 'description' | 'unit' | 'nullable' | 'optional'
>;

type Fields<Rows, Shapes> = {
  readonly [Name in keyof Rows]: Rows[Name] extends {
    readonly shape: infer Shape extends keyof Shapes;
  }
    ? OptionalField<Rows[Name], NullableField<Rows[Name], Shapes[Shape]>>
    : never;
};

type NullableField<Row, Schema> = Row extends { readonly nullable: true }
  ? z.ZodNullable<Schema extends z.ZodType ? Schema : never>
  : Schema;

type OptionalField<Row, Schema> = Row extends { readonly optional: true }
  ? z.ZodExactOptional<Schema extends z.ZodType ? Schema : never>
  : Schema;

/** Builds the schema of each row of a table of gauges, from the schemas of its shapes. */
export function fieldsOf<
  Rows extends Readonly<Record<string, SchemaRow<keyof Shapes & string>>>,
  Shapes extends Readonly<Record<string, z.ZodType>>,
>(rows: Rows, shapes: Shapes): Fields<Rows, Shapes> {
  const fields = Object.entries(rows).map(([name, row]) => [name, fieldOf(row, shapes)]);
  return Object.fromEntries(fields) as Fields<Rows, Shapes>;
}

function fieldOf(
  { shape, description, unit, nullable, optional }: SchemaRow<string>,
  shapes: Readonly<Record<string, z.ZodType>>,
): z.ZodType {
  let schema = shapes[shape];
  if (schema === undefined) throw new Error(`The shape ${shape} has no schema.`);
  if (nullable === true) schema = schema.nullable();
  if (optional === true) schema = schema.exactOptional();
  return schema.meta({ description, ...(unit !== undefined && { unit }) });
}
