import { count } from '../../format.ts';
import {
  budgetWords,
  BY,
  costWords,
  rowName,
  usedPart,
  type CostBudget,
  type CostRowView,
  type CostsView,
} from '../../model/costs.ts';
import { Level } from '../../ui/level.tsx';

/** Maximum of shown rows. The CSV file has all. */
const ROWS_MAX = 300;

/** Costs as rows, highest first. */
export function CostTable({ costs }: { readonly costs: CostsView }) {
  const { by, rows, total } = costs;
  const heading = BY.find((one) => one.by === by)?.name ?? '';
  const hasBudgets = rows.some(({ budget }) => budget !== null);
  return (
    <>
      <div class="table" tabIndex={0} role="region" aria-label={`Costs by ${by}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">{heading}</th>
              <th scope="col" class="number">
                Cost
              </th>
              {hasBudgets && <th scope="col">Budget</th>}
              <th scope="col" class="number">
                Calls
              </th>
              <th scope="col" class="number">
                Tokens in
              </th>
              <th scope="col" class="number">
                Tokens cached
              </th>
              <th scope="col" class="number">
                Tokens out
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, ROWS_MAX).map((row) => (
              <Row
                key={`${row.is_rest} ${row.name}`}
                costs={costs}
                row={row}
                hasBudgets={hasBudgets}
              />
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row">Total</th>
              <td class="number">{costWords(total)}</td>
              {hasBudgets && <td />}
              <td class="number">{count(total.calls)}</td>
              <td class="number">{count(total.input_tokens)}</td>
              <td class="number">{count(total.cached_tokens)}</td>
              <td class="number">{count(total.output_tokens)}</td>
            </tr>
          </tfoot>
        </table>
      </div>
      {rows.length > ROWS_MAX && (
        <p class="help">
          {ROWS_MAX} of {rows.length} rows are shown. The CSV file has all.
        </p>
      )}
    </>
  );
}

function Row(props: {
  readonly costs: CostsView;
  readonly row: CostRowView;
  readonly hasBudgets: boolean;
}) {
  const { costs, row, hasBudgets } = props;
  const part = costs.total.usd === 0 ? 0 : row.usd / costs.total.usd;
  return (
    <tr>
      <th scope="row" title={row.name ?? undefined}>
        <bdi>{rowName(row, costs.by)}</bdi>
      </th>
      <td class="number">
        {costWords(row)}
        <Level part={part} isBad={false} />
      </td>
      {hasBudgets && <td>{row.budget === null ? '–' : <BudgetLeft of={row.budget} />}</td>}
      <td class="number">{count(row.calls)}</td>
      <td class="number">{count(row.input_tokens)}</td>
      <td class="number">{count(row.cached_tokens)}</td>
      <td class="number">{count(row.output_tokens)}</td>
    </tr>
  );
}

function BudgetLeft({ of: budget }: { readonly of: CostBudget }) {
  const part = usedPart(budget);
  return (
    <>
      {budgetWords(budget)}
      {part !== null && <Level part={part} isBad={part >= 1} />}
    </>
  );
}
