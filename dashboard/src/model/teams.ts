import type { AnswerAt } from '../../../src/admin/client.ts';
import { teamSchema } from '../../../src/contract/config/keys.ts';
import type { CostRowView } from './costs.ts';
import type { EditedDocument } from './document.ts';
import type { FieldSection } from './field-words.ts';
import { KEY_SECTIONS } from './key-fields.ts';

export type Team = AnswerAt<'GET /teams/{id}'>;

/** All editable fields of a team, with labels. A test compares them with the schema. */
export const TEAM_SECTIONS: readonly FieldSection[] = [
  { id: 'team', title: 'Team', help: '', fields: { id: 'Id', note: 'Note' } },
  {
    id: 'limits',
    title: 'Limits and budget',
    help: 'They apply to all calls of its keys together, in addition to the limits of each key.',
    fields: KEY_SECTIONS.find(({ id }) => id === 'limits')?.fields ?? {},
  },
];

export const BLANK_TEAM: EditedDocument = { ...teamSchema.parse({ id: 'new' }), id: '' };

export function teamDocument({ id, note, limits }: Team): EditedDocument {
  return { id, note, limits };
}

/** Costs of a key or team that has counted calls or a budget. */
export interface SpentOf {
  readonly day: CostRowView | undefined;
  readonly month: CostRowView | undefined;
}

/** Joins the costs of today and this month by name. */
export function spentByName(
  day: readonly CostRowView[],
  month: readonly CostRowView[],
): ReadonlyMap<string, SpentOf> {
  const named = (rows: readonly CostRowView[]) =>
    new Map(rows.flatMap((row) => (row.name === null ? [] : [[row.name, row] as const])));
  const [days, months] = [named(day), named(month)];
  const names = new Set([...days.keys(), ...months.keys()]);
  return new Map(
    [...names].map((name) => [name, { day: days.get(name), month: months.get(name) }]),
  );
}

/** Budget to show: the monthly one, else the daily one. */
export function budgetOf({ day, month }: SpentOf): CostRowView['budget'] {
  return month?.budget ?? day?.budget ?? null;
}
