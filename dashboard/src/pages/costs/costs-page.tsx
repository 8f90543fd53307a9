import { api } from '../../api.ts';
import { count } from '../../format.ts';
import {
  BY,
  choiceOf,
  costWords,
  csvAddress,
  PERIODS,
  type CostGrouping,
  type CostsView,
  type CostPeriod,
} from '../../model/costs.ts';
import { useAnswer } from '../../ui/use-answer.ts';
import { useQuery } from '../../ui/use-query.ts';
import { CostTable } from './cost-table.tsx';
import { DayBars } from './day-bars.tsx';
import { NotCounted } from './not-counted.tsx';
import { WithoutQueue } from './without-queue.tsx';
import './costs.css';

export function CostsPage() {
  const [query, change] = useQuery();
  const { period, by } = choiceOf(query);
  const [answer, again] = useAnswer(() => ask(period, by), [period.id, by]);
  const costs = answer?.result.ok === true ? (answer.result.body as CostsView) : null;
  const isOld = answer !== null && (answer.period !== period || answer.by !== by);
  return (
    <>
      <header class="page-head">
        <h1>Costs</h1>
        <a
          class="button"
          href={csvAddress(period, by)}
          download={`costs-${period.id}-by-${by}.csv`}
        >
          Download CSV
        </a>
        <button type="button" class="quiet" onClick={again}>
          Reload
        </button>
      </header>
      <div class="cost-choices">
        <div role="group" aria-label="Period">
          {PERIODS.map(({ id, name }) => (
            <button
              key={id}
              type="button"
              aria-pressed={id === period.id}
              onClick={() => change({ period: id })}
            >
              {name}
            </button>
          ))}
        </div>
        <div role="group" aria-label="By">
          {BY.map(({ by: each, name }) => (
            <button
              key={each}
              type="button"
              aria-pressed={each === by}
              onClick={() => change({ by: each })}
            >
              {name}
            </button>
          ))}
        </div>
      </div>
      <div class="costs" aria-busy={answer === null || isOld}>
        {answer?.result.ok === false && <p role="alert">{answer.result.problem.detail}</p>}
        {costs !== null && <CostsOf costs={costs} />}
      </div>
    </>
  );
}

async function ask(period: CostPeriod, by: CostGrouping) {
  return { period, by, result: await api('GET /costs', { query: { ...period.query, by } }) };
}

function CostsOf({ costs }: { readonly costs: CostsView }) {
  const { total, name, rows } = costs;
  return (
    <>
      <p class="cost-total">
        <b>{costWords(total)}</b> in {name} (UTC), for {count(total.calls)}{' '}
        {total.calls === 1 ? 'call' : 'calls'}: {count(total.input_tokens)} tokens in,{' '}
        {count(total.cached_tokens)} of them cached, {count(total.output_tokens)} out
      </p>
      {rows.length === 0 ? <p>No calls were counted in {name}.</p> : <CostTable costs={costs} />}
      <NotCounted costs={costs} />
      <DayBars costs={costs} />
      <WithoutQueue costs={costs} />
    </>
  );
}
