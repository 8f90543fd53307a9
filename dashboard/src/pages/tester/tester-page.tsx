import { useEffect, useState } from 'preact/hooks';
import { api, type Problem } from '../../api.ts';
import { version } from '../../feed.ts';
import { callOf, isAsked, queryOf, testedFormOf, wrongIn } from '../../model/tested-call.ts';
import { useQuery } from '../../ui/use-query.ts';
import { RoutePicture, type TesterResult } from './route-picture.tsx';
import { TesterForm } from './tester-form.tsx';
import { useChoices } from './use-choices.ts';
import './tester.css';

/** Which groups would this call take? Nothing is sent anywhere. The call stands in the link. */
export function TesterPage() {
  const [query, setQuery] = useQuery();
  const choices = useChoices();
  const [tested, setTested] = useState<TesterResult | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const form = testedFormOf(query);

  useEffect(() => {
    let isOver = false;
    const ask = async (): Promise<void> => {
      const result = await api('testCall', { body: callOf(form) });
      if (isOver) return;
      setProblem(result.ok ? null : result.problem);
      setTested(result.ok ? result.body : null);
    };
    // A link made by hand may hold a key: it goes no further.
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
              Which groups would a call take? Say something of it, and see where it would go and
              whose slots it would take, in their order. Nothing is sent anywhere. The link of this
              page keeps what you ask.
            </p>
          ) : (
            <RoutePicture form={form} tested={tested} />
          )}
        </section>
      </div>
    </div>
  );
}
