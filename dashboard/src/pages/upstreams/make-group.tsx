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

/** Default slots, few enough for every paid plan. */
const SLOTS = 5;

interface MakeGroupProps {
  readonly upstream: UpstreamDetail;
  readonly made: () => void;
}

/** Creates a group for all calls of an upstream, with a minimal form. */
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
        make().catch(() => complain('The group could not be created. Try again.'));
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
          <label for="make-plan">Provider plan</label>
          <select
            id="make-plan"
            onChange={({ currentTarget }) => {
              const chosen = plans[currentTarget.selectedIndex - 1] ?? null;
              setPlan(chosen);
              const most = chosen?.limits.max_concurrency;
              if (most !== undefined) setSlots(String(most));
            }}
          >
            <option value="">unknown (slots only)</option>
            {plans.map((one) => (
              <option value={planWords(one)}>
                {planWords(one)}: {suggestedWords(one.limits)}
              </option>
            ))}
          </select>
        </div>
      )}
      <button type="submit" class="primary" disabled={isBusy}>
        Create group
      </button>
      <p class="help">
        Slots limit the calls in flight. All other settings have defaults, which you can edit later.{' '}
        {plan !== null && <PlanSource plan={plan} />}
      </p>
      {wrong !== null && <p role="alert">{wrong}</p>}
    </form>
  );
}

/** Creates a group, unless one with this name exists. Resolves with null, or with the error. */
async function makeGroup(
  name: string,
  upstream: string,
  slots: number,
  plan: Suggestion | null,
): Promise<string | null> {
  const present = await api('GET /groups/{name}', { params: { name } });
  if (present.ok) return `A group named “${name}” already exists. Choose another name.`;
  if (present.status !== 404) return present.problem.detail;
  const { models = [], limits = {} } = plan ?? {};
  const body = {
    match: { upstreams: [upstream], models: [...models] },
    limits: { ...limits, max_concurrency: slots },
  };
  const result = await api('PUT /groups/{name}', { params: { name }, body });
  if (!result.ok) return result.problem.detail;
  for (const warning of result.body.warnings) complain(warning);
  return null;
}
