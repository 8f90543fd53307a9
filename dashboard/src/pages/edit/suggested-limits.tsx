import { api } from '../../api.ts';
import type { FormState } from '../../form/schema-field.tsx';
import { valueAt } from '../../model/document.ts';
import {
  planWords,
  suggestedWords,
  suggestionSeen,
  type Suggestion,
} from '../../model/suggestions.ts';
import { PlanSource } from '../../ui/plan-source.tsx';
import { useAnswer } from '../../ui/use-answer.ts';

/** Suggestions are loaded for up to this number of upstreams. */
const UPSTREAMS_MAX = 4;

/** Limits that the providers of the group's upstreams publish or report. They apply only when used in the form. */
export function SuggestedLimits({ form }: { readonly form: FormState }) {
  const named = valueAt(form.draft, 'match.upstreams');
  const upstreams = Array.isArray(named) ? named.map(String).slice(0, UPSTREAMS_MAX) : [];
  const [plans] = useAnswer(() => plansOf(upstreams), [upstreams.join()]);
  if (plans === null || plans.length === 0) return null;
  return (
    <details class="suggested">
      <summary>Limits that the provider publishes or reports ({plans.length})</summary>
      <ul>
        {plans.map(({ upstream, plan }, index) => (
          <li key={index}>
            {upstreams.length > 1 && `${upstream}, `}
            <b>{planWords(plan)}</b>: {suggestedWords(plan.limits)}{' '}
            <button type="button" onClick={() => take(plan, form)}>
              Use<span class="visually-hidden"> {planWords(plan)}</span>
            </button>{' '}
            <small>
              <PlanSource plan={plan} />
            </small>
          </li>
        ))}
      </ul>
    </details>
  );
}

/** A plan with its upstream, because plans of two providers may have the same name. */
interface PublishedPlanChoice {
  readonly upstream: string;
  readonly plan: Suggestion;
}

async function plansOf(upstreams: readonly string[]): Promise<readonly PublishedPlanChoice[]> {
  const asked = await Promise.all(
    upstreams.map((id) => api('GET /upstreams/{id}', { params: { id } }).catch(() => null)),
  );
  return asked.flatMap((one) => {
    if (one?.ok !== true) return [];
    const { id: upstream, seen_limits: seen, suggested_limits: published } = one.body;
    return [...seen.map(suggestionSeen), ...published].map((plan) => ({ upstream, plan }));
  });
}

/** Copies the limits of a plan into the form. Other fields stay as they are. */
function take({ limits }: Suggestion, { change }: FormState): void {
  for (const [name, limit] of Object.entries(limits)) change(`limits.${name}`, limit);
}
