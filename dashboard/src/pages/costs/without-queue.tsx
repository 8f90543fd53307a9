import { count } from '../../format.ts';
import { rangeWords, roughUsd, type CostsView } from '../../model/costs.ts';

/** Estimate of what refusals and retries would have cost without the queue, with its formula. */
export function WithoutQueue({ costs }: { readonly costs: CostsView }) {
  const { total, name, without_queue: estimate } = costs;
  const { waited_calls: waited } = total;
  return (
    <section aria-labelledby="without-queue">
      <h2 id="without-queue">Without the queue</h2>
      {waited === 0 ? (
        <p>No call that is counted had to wait in {name}: nothing would have failed.</p>
      ) : (
        <>
          <p>
            {count(waited)} {waited === 1 ? 'call' : 'calls'} had to wait, and{' '}
            {waited === 1 ? 'was' : 'were'} served. With clients that try three times instead:
          </p>
          <ul>
            <li>
              <b>{rangeWords(estimate.failed_calls)}</b> would have failed, after{' '}
              {rangeWords(estimate.tries_more)} tries more
            </li>
            <li>
              <b>{rangeWords(estimate.usd_one_step, roughUsd)}</b> paid in vain, if each loses one
              paid step
            </li>
            <li>
              <b>{rangeWords(estimate.usd_whole_run, roughUsd)}</b>, if each is a step of ten and
              its run begins again
            </li>
          </ul>
        </>
      )}
      <p class="help">
        Calls that waited × 0.1 to 0.75 that fail × mean cost of a call × 1 or 4.5 paid steps lost;
        tries more: × 0.7 to 1.7. An estimate: the parts depend on slots and load. Nobody is billed
        for a refusal, so where callers keep what they have it is $0.
      </p>
    </section>
  );
}
