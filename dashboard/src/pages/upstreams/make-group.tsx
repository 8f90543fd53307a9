import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { groupNameFor } from '../../model/new-group.ts';
import {
  planWords,
  suggestedWords,
  suggestionSeen,
  type Suggestion,
} from '../../model/suggestions.ts';
import type { UpstreamDetail } from '../../model/upstream-view.ts';
import { PlanSource } from '../../ui/plan-source.tsx';
import { complain } from '../../ui/toasts.tsx';

/** Slots of a group that nobody has said more about: few enough for every plan that is paid for. */
const SLOTS = 5;

interface MakeGroupProps {
  readonly upstream: UpstreamDetail;
  readonly made: () => void;
}

/** Makes a group for all calls of an upstream, with the least that is to be said of one. */
export function MakeGroup({
  upstream: { id, suggested_limits: published, seen_limits: seen },
  made,
}: MakeGroupProps) {
  const [name, setName] = useState(() => groupNameFor(id));
  const [slots, setSlots] = useState(String(SLOTS));
  const plans = [...seen.map(suggestionSeen), ...published];
  const [plan, setPlan] = useState<Suggestion | null>(null);
  const [wrong, setWrong] = useState<string | null>(null);
  const [done, setDone] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);

  const make = async (): Promise<void> => {
    setBusy(true);
    setWrong(null);
    const problem = await makeGroup(name.trim(), id, Number(slots), plan);
    setBusy(false);
    setWrong(problem);
    if (problem !== null) return;
    setDone(name.trim());
    made();
  };

  if (done !== null) {
    return (
      <p role="status">
        ✓ <a href={`/admin/groups/${encodeURIComponent(done)}`}>{done}</a> takes the calls to {id}
        {plan !== null && plan.models.length > 0 && ` for ${plan.models.join(', ')}`}.
      </p>
    );
  }
  return (
    <form
      class="make-group"
      onSubmit={(event) => {
        event.preventDefault();
        make().catch(() => complain('It could not be made.'));
      }}
    >
      <div class="labelled">
        <label for="make-name">Name</label>
        <input
          id="make-name"
          value={name}
          required
          spellcheck={false}
          onInput={({ currentTarget }) => setName(currentTarget.value)}
        />
      </div>
      <div class="labelled">
        <label for="make-slots">Slots</label>
        <input
          id="make-slots"
          type="number"
          min={0}
          max={100_000}
          required
          value={slots}
          onInput={({ currentTarget }) => setSlots(currentTarget.value)}
        />
      </div>
      {plans.length > 0 && (
        <div class="labelled">
          <label for="make-plan">Your plan there</label>
          <select
            id="make-plan"
            onChange={({ currentTarget }) => {
              const chosen = plans[currentTarget.selectedIndex - 1] ?? null;
              setPlan(chosen);
              const most = chosen?.limits.max_concurrency;
              if (most !== undefined) setSlots(String(most));
            }}
          >
            <option value="">not known: slots alone</option>
            {plans.map((one) => (
              <option value={planWords(one)}>
                {planWords(one)}: {suggestedWords(one.limits)}
              </option>
            ))}
          </select>
        </div>
      )}
      <button type="submit" class="primary" disabled={isBusy}>
        Make
      </button>
      <p class="help">
        Calls in flight at once. The rest of it has defaults, and can be edited.{' '}
        {plan !== null && <PlanSource plan={plan} />}
      </p>
      {wrong !== null && <p role="alert">{wrong}</p>}
    </form>
  );
}

/** Makes it, unless there is one of that name, which is nobody's to lose here. Resolves with what was wrong, or null. */
async function makeGroup(
  name: string,
  upstream: string,
  slots: number,
  plan: Suggestion | null,
): Promise<string | null> {
  const present = await api('getGroup', { params: { name } });
  if (present.ok) return `There is a group "${name}" already. Choose another name.`;
  if (present.status !== 404) return present.problem.detail;
  const { models = [], limits = {} } = plan ?? {};
  const body = {
    match: { upstreams: [upstream], models: [...models] },
    limits: { ...limits, max_concurrency: slots },
  };
  const result = await api('putGroup', { params: { name }, body });
  if (!result.ok) return result.problem.detail;
  for (const warning of result.body.warnings) complain(warning);
  return null;
}
