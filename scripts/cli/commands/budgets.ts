import { plural } from '../../../src/core/words/figures.ts';
import { EXIT, CommandFailure } from '../failure.ts';
import { noteAll, show, table, type Output } from '../output.ts';
import { taken, type CliTarget } from '../target.ts';

export interface Correcting {
  readonly by: number;
  readonly period?: 'hour' | 'day' | 'month';
  readonly partition?: string;
  readonly member?: string;
  readonly note?: string;
  readonly id?: string;
}

/** Adds an amount to the spend of the budget of a group, key or team. A negative amount is subtracted. */
export async function correctBudget(
  target: CliTarget,
  output: Output,
  name: string,
  { by, period = 'month', partition, member, note, id = crypto.randomUUID() }: Correcting,
): Promise<void> {
  const body = {
    id,
    amount_usd: by,
    period,
    ...(partition === undefined ? {} : { partition }),
    ...(member === undefined ? {} : { member }),
    ...(note === undefined ? {} : { note }),
  };
  const answer = await takenOnce(output, id, () =>
    target.admin('POST /groups/{name}/budget/corrections', { params: { name }, body }),
  );
  show(output, answer, () => spentText(answer));
  noteAll(output, [`To undo it: headgate budgets undo ${name} ${answer.correction.id}`]);
}

/** Sends a correction. If the response is lost, the correction may have been applied, so its id is printed. */
async function takenOnce<Body>(
  output: Output,
  id: string,
  send: () => Promise<Parameters<typeof taken<Body>>[0]>,
): Promise<Body> {
  try {
    return taken(await send());
  } catch (error) {
    if (error instanceof CommandFailure && error.code === EXIT.unreachable) {
      noteAll(output, [
        `The correction may have been applied. Retry with --id ${id} to avoid applying it twice.`,
      ]);
    }
    throw error;
  }
}

export async function undoCorrection(
  target: CliTarget,
  output: Output,
  name: string,
  id: string,
): Promise<void> {
  const answer = taken(
    await target.admin('POST /groups/{name}/budget/corrections/{id}/undo', {
      params: { name, id },
    }),
  );
  show(output, answer, () => spentText(answer));
}

export async function listCorrections(
  target: CliTarget,
  output: Output,
  name: string,
): Promise<void> {
  const answer = taken(
    await target.admin('GET /groups/{name}/budget/corrections', { params: { name } }),
  );
  show(output, answer, () =>
    answer.corrections.length === 0
      ? 'No corrections.'
      : table(
          ['id', 'created', 'member', 'period', 'usd', 'by', 'undone', 'note'],
          answer.corrections.map((each) => [
            each.id,
            each.at,
            each.member,
            each.period,
            each.amount_usd,
            each.by,
            each.undone_at,
            each.note,
          ]),
        ),
  );
  if (answer.unreachable.length > 0) {
    throw new CommandFailure(
      EXIT.unreachable,
      `${plural(answer.unreachable.length, 'pool')} did not respond, so the list is incomplete. Try again.`,
    );
  }
}

function spentText({ group, spent_usd: spent }: BudgetAnswer): string {
  return `${group}: ${usdText(spent.hour)} spent in the current hour, ${usdText(spent.day)} today, ${usdText(spent.month)} this month (UTC).`;
}

interface BudgetAnswer {
  readonly group: string;
  readonly spent_usd: { readonly hour: number; readonly day: number; readonly month: number };
}

function usdText(usd: number): string {
  return `$${usd.toFixed(4).replace(/\.?0+$/, '')}`;
}
