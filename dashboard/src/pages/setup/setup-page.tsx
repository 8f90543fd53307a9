import { useEffect, useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { version } from '../../feed.ts';
import { PAGE_MAX, setupItems, type SetupFacts, type SetupItem } from '../../model/setup-state.ts';
import { ClientRecipes } from './client-recipes.tsx';
import { SendTestCall } from './send-test-call.tsx';
import { WebhookSection } from './webhook-section.tsx';
import './setup.css';

/** First steps: what is missing, client configurations, a test call, and the webhook. */
export function SetupPage() {
  const facts = useFacts();
  return (
    <div class="setup">
      <h1>Set-up</h1>
      <section aria-labelledby="setup-state" aria-busy={facts === null}>
        <h2 id="setup-state">1. What is ready, and what is missing</h2>
        <ul class="checks">
          {facts !== null &&
            setupItems(facts).map((item) => <Check key={item.title} item={item} />)}
        </ul>
      </section>
      <section aria-labelledby="setup-clients">
        <h2 id="setup-clients">2. Point a client here</h2>
        <p class="help">
          A client needs one changed setting, its base URL. Keys, models, streaming and errors stay
          as they are.
        </p>
        <ClientRecipes />
      </section>
      <section aria-labelledby="setup-call">
        <h2 id="setup-call">3. Send a test call</h2>
        <SendTestCall upstreams={facts?.upstreams ?? []} />
      </section>
      <WebhookSection />
    </div>
  );
}

/** Facts of the deployment. They reload when the configuration changes. null until loaded. */
function useFacts(): SetupFacts | null {
  const [facts, setFacts] = useState<SetupFacts | null>(null);
  useEffect(() => {
    let isOver = false;
    const ask = async (): Promise<void> => {
      const [groups, keys, upstreams] = await Promise.all([
        api('GET /groups', { query: { limit: PAGE_MAX } }),
        api('GET /keys', { query: { limit: PAGE_MAX } }),
        api('GET /upstreams', { query: { limit: PAGE_MAX } }),
      ]);
      if (isOver) return;
      setFacts({
        groups: groups.ok ? groups.body.groups.length : null,
        keys: keys.ok ? keys.body.keys.length : null,
        upstreams: upstreams.ok ? upstreams.body.upstreams : null,
      });
    };
    ask().catch(() => undefined);
    return () => {
      isOver = true;
    };
  }, [version.value]);
  return facts;
}

const SIGNS: Readonly<Record<SetupItem['state'], readonly [string, string]>> = {
  ready: ['✓', 'ready'],
  open: ['○', 'optional'],
  todo: ['!', 'missing'],
};

function Check({ item }: { readonly item: SetupItem }) {
  const [sign, word] = SIGNS[item.state];
  return (
    <li class={item.state}>
      <span class="sign" aria-hidden="true">
        {sign}
      </span>
      <b>{item.title}</b> <small>{word}</small>
      <span class="says">
        {item.says} {item.command !== undefined && <code>{item.command}</code>} {item.afterwards}{' '}
        {item.href !== undefined && <a href={item.href}>{item.link}</a>}
      </span>
    </li>
  );
}
