import { plural } from '../../format.ts';
import { rangeWords, roughUsd, type CostsView } from '../../model/costs.ts';

/** Estimated cost of refusals and retries without the queue, with the formula. */
export function WithoutQueue({ costs }: { readonly costs: CostsView }) {
  const { total, name, without_queue: estimate } = costs;
  const { waited_calls: waited } = total;
  return (
    <section aria-labelledby="without-queue">
      <h2 id="without-queue">Without the queue</h2>
      {waited === 0 ? (
        <p>No counted call had to wait in {name}, so none would have failed.</p>
      ) : (
        <>
          <p>
            {plural(waited, 'call')} had to wait, and {waited === 1 ? 'was' : 'were'} served. If
            clients made three attempts instead:
          </p>
          <ul>
            <li>
              <b>{rangeWords(estimate.failed_calls)}</b> would have failed, after{' '}
              {rangeWords(estimate.tries_more)} more attempts
            </li>
            <li>
              <b>{rangeWords(estimate.usd_one_step, roughUsd)}</b> would have been lost, if each
              loses one paid step
            </li>
            <li>
              <b>{rangeWords(estimate.usd_whole_run, roughUsd)}</b> would have been lost, if each is
              one of ten steps and its run starts over
            </li>
          </ul>
        </>
      )}
      <p class="help">
        Cost = calls that waited × part that fails (0.1 to 0.75) × mean cost of a call × paid steps
        lost (1 or 4.5). More attempts = calls that waited × 0.7 to 1.7. These are estimates: the
        factors depend on slots and load. Providers do not bill refusals, so the cost is $0 if
        callers keep their finished steps.
      </p>
    </section>
  );
}
