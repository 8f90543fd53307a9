import type * as z from 'zod';
import type { shownTeamSchema } from '../../../src/contract/admin/team-routes.ts';
import { teamSchema } from '../../../src/contract/config/keys.ts';
import type { CostRowView } from './costs.ts';
import type { EditedDocument } from './document.ts';
import type { FieldSection } from './field-words.ts';
import { KEY_SECTIONS } from './key-fields.ts';

export type Team = z.output<typeof shownTeamSchema>;

/** Every field of a team that people set, with its label. A test holds it against the schema. */
export const TEAM_SECTIONS: readonly FieldSection[] = [
  { id: 'team', title: 'Team', help: '', fields: { id: 'Id', note: 'Note' } },
  {
    id: 'limits',
    title: 'Limits and budget',
    help: 'Over everything that all its keys call together. Those of each key hold besides.',
    fields: KEY_SECTIONS.find(({ id }) => id === 'limits')?.fields ?? {},
  },
];

/** A team as it is before anybody said anything of it. */
export const BLANK_TEAM: EditedDocument = { ...teamSchema.parse({ id: 'new' }), id: '' };

/** Picks what people may change of a team. */
export function teamDocument({ id, note, limits }: Team): EditedDocument {
  return { id, note, limits };
}

/** Costs of one key or team, where any call of it was counted or it has a budget. */
export interface SpentOf {
  readonly day: CostRowView | undefined;
  readonly month: CostRowView | undefined;
}

/** Puts the costs of this day and month side by side, by name. */
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

/** Picks the budget to show: that of the month, or of the day where there is no other. */
export function budgetOf({ day, month }: SpentOf): CostRowView['budget'] {
  return month?.budget ?? day?.budget ?? null;
}
