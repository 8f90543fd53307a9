import { usd } from '../../format.ts';
import { budgetWords, usedPart, type CostRow } from '../../model/costs.ts';
import { budgetOf, type SpentOf } from '../../model/teams.ts';
import { Level } from '../../ui/level.tsx';

/** Headings of the cells below. */
export function SpentHeadings() {
  return (
    <>
      <th scope="col" class="number">
        Today
      </th>
      <th scope="col" class="number">
        This month
      </th>
      <th scope="col">Of budget</th>
    </>
  );
}

/** Costs of a key or team: today, this month, and of its budget. Undefined: no call was counted. */
export function SpentCells({ of: spent }: { readonly of: SpentOf | undefined }) {
  const budget = spent === undefined ? null : budgetOf(spent);
  return (
    <>
      <td class="number">{money(spent?.day)}</td>
      <td class="number">{money(spent?.month)}</td>
      <td>
        {budget === null ? (
          <span class="dim">none</span>
        ) : (
          <>
            {budgetWords(budget)}
            <Level part={usedPart(budget)} isBad={budget.left_usd <= 0} />
          </>
        )}
      </td>
    </>
  );
}

/** Words for a cost: one that was not counted is not $0. */
function money(row: CostRow | undefined) {
  return row === undefined || row.calls === 0 ? <span class="dim">–</span> : usd(row.usd);
}
