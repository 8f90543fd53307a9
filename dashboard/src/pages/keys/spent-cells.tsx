import { budgetWords, costWords, usedPart, type CostRowView } from '../../model/costs.ts';
import { budgetOf, type SpentOf } from '../../model/teams.ts';
import { Level } from '../../ui/level.tsx';

export function SpentHeadings() {
  return (
    <>
      <th scope="col" class="number">
        Today
      </th>
      <th scope="col" class="number">
        This month
      </th>
      <th scope="col">Budget</th>
    </>
  );
}

/** Costs of a key or team: today, this month, and its budget. undefined if no call was counted. */
export function SpentCells({ of: spent }: { readonly of: SpentOf | undefined }) {
  const budget = spent === undefined ? null : budgetOf(spent);
  const part = budget === null ? null : usedPart(budget);
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
            {part !== null && <Level part={part} isBad={part >= 1} />}
          </>
        )}
      </td>
    </>
  );
}

/** Formats a cost. Uncounted calls and unknown prices are not shown as $0. */
function money(row: CostRowView | undefined) {
  if (row === undefined || row.calls === 0) return <span class="dim">–</span>;
  return costWords(row);
}
