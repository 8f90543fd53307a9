import * as z from 'zod';
import { groupSchema } from '../contract/config/group.ts';

export const configVersion = z.int().min(0).describe('Version of the configuration.');

export const instant = z.iso.datetime();

/** null if the group is not split. */
export const partitionName = z.string().nullable();

const warnings = z
  .array(z.string())
  .describe('Consequences of the change that you may not expect, one sentence each.');

/** One page of a list. The next one is requested by sending `next_cursor` as `cursor`. */
export function pageOf<Name extends string, Item extends z.ZodType>(name: Name, item: Item) {
  const rest = {
    version: configVersion,
    next_cursor: z
      .string()
      .nullable()
      .describe('Send it as `cursor` to get the next page. null on the last page.'),
  };
  const list = z.array(item).describe('Items of this page.');
  return z.object({ [name]: list, ...rest } as Record<Name, z.ZodArray<Item>> & typeof rest);
}

/** Response to a change, also if nothing had to change. */
export const changedSchema = z.object({ version: configVersion, warnings });

export const changedGroupSchema = changedSchema.extend({ group: groupSchema });

export const changedConfigSchema = changedSchema.extend({
  groups: z.array(z.string()).describe('Names of all groups.'),
});

export const pageQuery = z.strictObject({
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(1_000)
    .default(100)
    .describe('Maximum number of items per page.'),
  cursor: z
    .string()
    .max(1_000)
    .optional()
    .describe('The `next_cursor` of the previous page. Absent for the first page.'),
});

export const groupName = z.string().min(1).max(300).describe('URL-encoded name of the group.');

export const groupParams = z.strictObject({ name: groupName });

/** Any object. The result of the patch is validated, not the patch. */
export const mergePatchSchema = z.record(z.string(), z.unknown());

/** A time in a query: RFC 3339, or epoch milliseconds. */
export const queryInstant = z.union(
  [
    z.iso.datetime({ offset: true }).transform((text) => Date.parse(text)),
    z
      .string()
      .regex(/^\d{1,15}$/)
      .transform(Number),
  ],
  'expected RFC 3339, or epoch milliseconds',
);

export const fromInstant = queryInstant
  .optional()
  .describe('Start of the period: RFC 3339, or epoch milliseconds.');

export const toInstant = queryInstant
  .optional()
  .describe('End of the period, exclusive: RFC 3339, or epoch milliseconds. Defaults to now.');

interface ListPage<Item> {
  readonly items: readonly Item[];
  readonly next_cursor: string | null;
}

/**
 * Returns a page of a list that is sorted by the names of its items. The cursor is the last name of the previous page,
 * so concurrent changes of the list cause neither omissions nor duplicates.
 */
export function pageByName<Item>(
  all: readonly Item[],
  nameOf: (item: Item) => string,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
): ListPage<Item> {
  const rest = all
    .filter((item) => cursor === undefined || nameOf(item) > cursor)
    .toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  const items = rest.slice(0, limit);
  const last = items.at(-1);
  return { items, next_cursor: rest.length > limit && last !== undefined ? nameOf(last) : null };
}
