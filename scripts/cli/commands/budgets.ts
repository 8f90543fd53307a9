import { EXIT, CommandFailure } from '../failure.ts';
import { noteAll, show, table, type Output } from '../output.ts';
import { taken, type CliTarget } from '../target.ts';

/** Options of a correction. */
export interface Correcting {
  readonly by: number;
  readonly period?: 'hour' | 'day' | 'month';
  readonly partition?: string;
  readonly member?: string;
  readonly note?: string;
  readonly id?: string;
}

/** Corrects the spend of the budget of a group, key or team. */
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
    target.admin('correctBudget', { params: { name }, body }),
  );
  show(output, answer, () => spentText(answer));
  noteAll(output, [`To take it back: headgate budgets undo ${name} ${answer.correction.id}`]);
}

/** Sends a correction. If the answer is lost, the correction may have been made, so its id is printed. */
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
        `The correction may have been made. Retry with --id ${id}, so that it is not made twice.`,
      ]);
    }
    throw error;
  }
}

/** Undoes a correction. */
export async function undoCorrection(
  target: CliTarget,
  output: Output,
  name: string,
  id: string,
): Promise<void> {
  const answer = taken(await target.admin('undoCorrection', { params: { name, id } }));
  show(output, answer, () => spentText(answer));
}

/** Shows the last corrections of a budget. */
export async function listCorrections(
  target: CliTarget,
  output: Output,
  name: string,
): Promise<void> {
  const answer = taken(await target.admin('listCorrections', { params: { name } }));
  show(output, answer, () =>
    answer.corrections.length === 0
      ? 'No corrections.'
      : table(
          ['id', 'made', 'member', 'period', 'usd', 'by', 'undone', 'note'],
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
      `${answer.unreachable.length} pools did not answer.`,
    );
  }
}

function spentText({ group, spent_usd: spent }: BudgetAnswer): string {
  return `${group}: ${usdText(spent.hour)} spent in this hour, ${usdText(spent.day)} in this day, ${usdText(spent.month)} in this month (UTC).`;
}

interface BudgetAnswer {
  readonly group: string;
  readonly spent_usd: { readonly hour: number; readonly day: number; readonly month: number };
}

function usdText(usd: number): string {
  return `$${usd.toFixed(4).replace(/\.?0+$/, '')}`;
}
