import { count } from '../../format.ts';
import { costWords, type CostsView } from '../../model/costs.ts';
import { Level } from '../../ui/level.tsx';

export function DayBars({ costs: { period, days } }: { readonly costs: CostsView }) {
  if (period !== 'month' || days.length === 0) return null;
  const most = Math.max(...days.map((day) => day.usd));
  return (
    <section aria-labelledby="cost-days">
      <h2 id="cost-days">By day</h2>
      <div class="table" tabIndex={0} role="region" aria-label="Costs by day">
        <table>
          <thead>
            <tr>
              <th scope="col">Day (UTC)</th>
              <th scope="col" class="number">
                Cost
              </th>
              <th scope="col" class="number">
                Calls
              </th>
              <th scope="col" class="number">
                Tokens
              </th>
            </tr>
          </thead>
          <tbody>
            {days.toReversed().map((day) => (
              <tr key={day.date}>
                <th scope="row">{day.date}</th>
                <td class="number">
                  {costWords(day)}
                  <Level part={most === 0 ? 0 : day.usd / most} isBad={false} />
                </td>
                <td class="number">{count(day.calls)}</td>
                <td class="number">{count(day.input_tokens + day.output_tokens)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
