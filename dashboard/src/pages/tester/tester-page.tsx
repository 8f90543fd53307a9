import { useEffect, useState } from 'preact/hooks';
import { api, type Problem } from '../../api.ts';
import { version } from '../../feed.ts';
import { callOf, isAsked, queryOf, testedFormOf, wrongIn } from '../../model/tested-call.ts';
import { useQuery } from '../../ui/use-query.ts';
import { RoutePicture, type TesterResult } from './route-picture.tsx';
import { TesterForm } from './tester-form.tsx';
import { useChoices } from './use-choices.ts';
import './tester.css';

/** Shows the groups of a call without sending it. The link contains the call. */
export function TesterPage() {
  const [query, setQuery] = useQuery();
  const choices = useChoices();
  const [tested, setTested] = useState<TesterResult | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const form = testedFormOf(query);

  useEffect(() => {
    let isOver = false;
    const ask = async (): Promise<void> => {
      const result = await api('POST /tester', { body: callOf(form) });
      if (isOver) return;
      setProblem(result.ok ? null : result.problem);
      setTested(result.ok ? result.body : null);
    };
    // A handmade link may contain a key, which must not be sent.
    const isFit = choices !== null && Object.keys(wrongIn(form, choices.keyIds)).length === 0;
    if (isAsked(form) && isFit) ask().catch(() => undefined);
    return () => {
      isOver = true;
    };
  }, [JSON.stringify(form), choices, version.value]);

  return (
    <div class="tester">
      <h1>Tester</h1>
      <div class="halves">
        <TesterForm
          form={form}
          choices={choices}
          problem={problem}
          submit={(asked) => setQuery(queryOf(asked))}
        />
        <section aria-label="Route" aria-live="polite">
          {tested === null ? (
            <p class="help">
              Enter a call to see where it goes and which groups it needs slots in, in their order.
              Nothing is sent. The link of this page contains your input.
            </p>
          ) : (
            <RoutePicture form={form} tested={tested} />
          )}
        </section>
      </div>
    </div>
  );
}
