import { useState } from 'preact/hooks';
import { complain, say } from '../../ui/toasts.tsx';
import { recipesFor } from './recipes.ts';

/** Client configurations to copy, with the address of this deployment. */
export function ClientRecipes() {
  const recipes = recipesFor(location.origin);
  const [chosen, setChosen] = useState(recipes[0]?.id);
  const recipe = recipes.find(({ id }) => id === chosen);
  if (recipe === undefined) return null;
  return (
    <div class="recipes">
      <div class="choices" role="group" aria-label="Client">
        {recipes.map(({ id, name }) => (
          <button type="button" aria-pressed={id === chosen} onClick={() => setChosen(id)}>
            {name}
          </button>
        ))}
      </div>
      <div class="code">
        <pre tabIndex={0} role="region" aria-label={`Set-up for ${recipe.name}`}>
          {recipe.code}
        </pre>
        <button type="button" onClick={() => void copy(recipe.code)}>
          Copy
        </button>
      </div>
      <p class="help">{recipe.note}</p>
    </div>
  );
}

async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say('Copied.');
  } catch {
    // Browsers offer no clipboard over plain HTTP, except on localhost.
    complain('The browser blocked copying. Select the text and copy it manually.');
  }
}
