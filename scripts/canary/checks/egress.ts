import { nameOf, type CanaryCallEnd } from '../call.ts';
import { outcome, type Check } from '../check.ts';
import { countsOf, listed } from '../figures.ts';
import type { CanaryStage } from '../stage.ts';

const PATIENCE_MS = 120_000;

/** Returns the data centre of a call: where the Worker was placed, or where the call arrived. */
function coloOf({ headers }: CanaryCallEnd): string {
  const placed = headers['cf-placement'];
  if (typeof placed === 'string') return placed;
  const ray = headers['cf-ray'];
  return typeof ray === 'string' ? (ray.split('-').at(-1) ?? 'unknown') : 'unknown';
}

const isServed = ({ status }: CanaryCallEnd): boolean => status !== null && status < 300;

async function sequential(
  stage: CanaryStage,
  send: () => Promise<CanaryCallEnd>,
): Promise<CanaryCallEnd[]> {
  const ends: CanaryCallEnd[] = [];
  for (let at = 0; at < stage.pace.egress.calls; at += 1) ends.push(await send());
  return ends;
}

async function concurrent(
  stage: CanaryStage,
  send: () => Promise<CanaryCallEnd>,
): Promise<CanaryCallEnd[]> {
  const { calls, atOnce } = stage.pace.egress;
  const ends: CanaryCallEnd[] = [];
  const sender = async (_: unknown, at: number): Promise<void> => {
    for (let sent = at; sent < calls; sent += atOnce) ends.push(await send());
  };
  await Promise.all(Array.from({ length: atOnce }, sender));
  return ends;
}

function byColo(ends: readonly CanaryCallEnd[]): Record<string, Record<string, number>> {
  const colos = new Set(ends.map(coloOf));
  return Object.fromEntries(
    [...colos].map((colo) => [
      colo,
      countsOf(ends.filter((end) => coloOf(end) === colo).map(nameOf)),
    ]),
  );
}

/**
 * Returns how many rejections Headgate attributed to the egress location, including those that were retried elsewhere.
 */
async function refusedEgress(stage: CanaryStage): Promise<number> {
  const { refusals_total: refusals } = await stage.status(stage.upstreamGroup);
  return refusals['egress'] ?? 0;
}

/** Counts the calls that a provider rejects because of the location of the Worker. */
export const egress: Check = {
  id: 'egress',
  title: 'Rejections by the provider because of the egress location',
  needs: ['upstream'],
  plan: ({ egress: { calls } }) => ({ calls: 0, ms: calls * 2_000, paidCalls: calls * 2 }),
  groups: () => ({}),
  async run(stage) {
    const { upstream, pace } = stage;
    if (upstream === null) throw new Error('no upstream');
    await stage.setUpstreamSlots(pace.egress.atOnce);
    const send = (): Promise<CanaryCallEnd> =>
      stage.sendUpstream(upstream.small(), PATIENCE_MS).ended;
    stage.say(`${pace.egress.calls} sequential calls`);
    const alone = await sequential(stage, send);
    stage.say(`${pace.egress.calls} calls, ${pace.egress.atOnce} at a time`);
    const together = await concurrent(stage, send);
    const recognised = await refusedEgress(stage);
    const refused = [...alone, ...together].filter((end) => !isServed(end));
    const forbidden = (ends: readonly CanaryCallEnd[]): number =>
      ends.filter(({ status }) => status === 403).length;
    const wrong =
      refused.length === 0 ? '' : `; not served: ${listed(countsOf(refused.map(nameOf)))}`;
    const first = refused[0]?.text.slice(0, 200).replaceAll(/\s+/g, ' ');
    const found = `403 for ${forbidden(alone)} of ${alone.length} sequential calls and ${forbidden(together)} of ${together.length} concurrent calls; data centres: ${Object.keys(byColo([...alone, ...together])).join(', ')}; egress rejections recognized by Headgate: ${recognised}${wrong}`;
    const figures = {
      sequential: byColo(alone),
      concurrent: byColo(together),
      recognised,
      ...(first !== undefined && { first_refusal: first }),
    };
    const isWell = refused.length === 0 && recognised === 0;
    const meaning = isWell
      ? 'The provider accepts calls from where this Worker runs.'
      : 'Not all calls were served. If some data centres get 403, pin the Worker with [placement]. See docs/production.md.';
    return outcome(isWell, found, meaning, figures);
  },
};
