// The page's own behaviour. Python renders all HTML (escaped); this patches it in, sends events back, and moves the focus.
window.sequitur ??= (() => {
  "use strict";
  const find = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const phone = () => matchMedia("(max-width: 1099px)").matches;
  const triggers = new WeakMap(); // root element of a live piece -> its trigger function
  let showAnswering = () => {}; // shows what is being written once more

  // --- patching -----------------------------------------------------------------------------------------------

  // Turns the children of `old` into those of `fresh`, keeping nodes: by id where they have one, else by place.
  function patch(old, fresh) {
    let next = old.firstChild;
    for (const child of [...fresh.childNodes]) {
      const kept = child.id ? keptById(child, old) : next && !next.id && alike(next, child) ? next : null;
      if (!kept) {
        old.insertBefore(child, next);
        continue;
      }
      if (kept === next) next = next.nextSibling;
      else old.insertBefore(kept, next);
      update(kept, child);
    }
    while (next) {
      const gone = next;
      next = next.nextSibling;
      gone.remove();
    }
  }

  // A turn that has been answered moves, as it is, from the piece being written to the transcript.
  function keptById(child, old) {
    const same = document.getElementById(child.id);
    return same && same.tagName === child.tagName && (same.parentNode === old || child.tagName === "ARTICLE") ? same : null;
  }

  const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && !b.id;

  function update(old, fresh) {
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
      return;
    }
    if (old.isEqualNode(fresh)) return;
    const cited = old.matches("#sources .current"); // only the browser knows which citation is shown
    for (const { name } of [...old.attributes]) if (!["open", "data-folded"].includes(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) === value) continue;
      if (name === "open" && old.matches(".group")) continue; // people fold groups of facts; what is asked for opens
      old.setAttribute(name, value);
      if (name === "value" && old !== document.activeElement) old.value = value;
    }
    if (cited) old.classList.add("current");
    if (old.type === "checkbox") old.checked = fresh.hasAttribute("checked");
    // What is being written fills a place; the transcript around it only says where that is. What was picked stays.
    if (!fresh.matches(".place[data-place], textarea, select")) patch(old, fresh);
  }

  // --- live pieces: HTML in, events out -----------------------------------------------------------------------

  function live(element, props, trigger, watch) {
    triggers.set(element, trigger);
    element.dataset.live = "";
    const show = () => {
      const fresh = new DOMParser().parseFromString(props.value || "", "text/html").body;
      // A frame of an answer that belongs to another conversation came too late.
      const only = find("[data-only]", fresh)?.dataset.only;
      if (only && only !== here().conversation) return;
      const into = find("[data-into]", fresh);
      const place = into && document.getElementById(into.dataset.into);
      if (into && !place) return; // the transcript that has this place comes next
      const atEnd = nearEnd() && (!place || !place.nextElementSibling);
      const begins = place && !place.firstChild;
      const had = focused(element);
      if (place) patch(place, into);
      patch(element, place ? document.createElement("div") : fresh);
      if (begins) place.scrollIntoView({ block: "nearest" });
      after(element, atEnd);
      refocus(element, had);
    };
    if (element.closest("#answering")) showAnswering = show;
    watch("value", show);
    show();
  }

  // What this tab shows; goes with every event.
  function here() {
    const shown = find("#transcript [data-conversation]")?.dataset.conversation ?? "";
    return {
      conversation: shown,
      shown,
      looked: find("#sources [data-looked]")?.dataset.looked ?? "",
      search: find("#search")?.value ?? "",
    };
  }

  async function send(element, name, data) {
    const root = element.closest("[data-live]");
    if (!root || !(await alive())) return false;
    triggers.get(root)(name, { ...here(), ...data });
    return true;
  }

  function after(element, atEnd) {
    const root = element.closest(".block").id;
    if (["transcript", "answering", "composer", "notice"].includes(root)) sentOver(root);
    if (root === "transcript" || root === "answering") {
      if (root === "transcript") {
        if (find("#transcript [data-conversation]")) placed();
        remember();
        if (!asking || asked) showAnswering();
        focusAgain();
        showTurn();
      }
      running();
      if (atEnd && find("#talk article")) toEnd();
    }
    if (root === "sources" && wanted) showCitation(wanted);
    if (root === "composer") draftFromServer(element);
    if (root === "notice" && find(".error", element)) refused();
    if (root === "facts") {
      factStored();
      filterFacts();
      requestAnimationFrame(showFact); // a tab that was never open before is not laid out yet
    }
    if (root === "download") download(find("[data-download]", element));
  }

  // --- events -------------------------------------------------------------------------------------------------

  document.addEventListener("click", (event) => {
    const target = event.target.closest?.("button, a, [data-event]");
    closePops(event.target);
    closeTips(event.target);
    if (tipOf(event)) return tellTip(tipOf(event));
    if (event.target.closest?.("#main") && !target) closeDrawers();
    if (!target) return;
    if (target.dataset.cite !== undefined) return cite(target);
    if (target.dataset.panel) return openPanel(target.dataset.panel);
    if (target.dataset.fix) return openFact(target.dataset.fix, target.dataset.turn);
    if (target.dataset.copy) return copy(target);
    if (target.dataset.ask) return void ask(target.dataset.ask);
    if (target.dataset.close !== undefined) return target.closest(".notice").remove();
    if (target.dataset.drawer) return drawer(target.dataset.drawer);
    if (target.dataset.themeSwitch !== undefined) return theme(document.body.classList.contains("dark") ? "light" : "dark");
    if (target.dataset.event && target.tagName === "BUTTON") act(target);
  });

  document.addEventListener("animationend", (event) => {
    if (event.animationName === "leave") event.target.remove(); // a note that was told
  });

  function act(button) {
    if (button.dataset.confirm && !confirm(button.dataset.confirm)) return;
    if (button.dataset.event === "look") openPanel("sources");
    toFocus = button.dataset.focus ?? "";
    if (button.dataset.closes !== undefined || button.dataset.show) closeDrawers();
    wantedTurn = button.dataset.show ?? "";
    send(button, button.dataset.event, { ...button.dataset });
    if (button.dataset.event === "open" && !wantedTurn) box()?.focus();
  }

  let wantedTurn = ""; // the id of the turn to show once its conversation is there

  function showTurn() {
    const turn = wantedTurn && document.getElementById(`turn-${wantedTurn}`);
    if (!turn) return;
    wantedTurn = "";
    turn.scrollIntoView({ block: "start" });
    (find(".reply", turn) ?? box()).focus({ preventScroll: true });
  }

  let toFocus = ""; // the id of what takes the focus once the transcript has changed

  // After a step to the first or last version, its button can't be pressed, and the other one takes the focus.
  function focusAgain() {
    const target = toFocus && document.getElementById(toFocus);
    if (!target) return;
    toFocus = "";
    closeDrawers();
    (target.disabled ? find("button:enabled", target.parentElement) : target)?.focus();
  }

  // Where the focus goes when what had it is gone and nothing like it is left.
  const HOME = {
    transcript: "#box",
    conversations: "#conversations .new",
    facts: "#new-fact",
    documents: "#panel [role=tab][aria-selected=true]",
  };

  // What has the focus in this piece: which of the buttons of its kind, in its list or group.
  function focused(element) {
    const active = document.activeElement;
    if (!element.contains(active)) return null;
    const group = active.closest("ul, [role=group]") ?? element;
    const kind = `[data-event="${active.dataset.event}"]`;
    return { group, kind, place: all(kind, group).indexOf(active) };
  }

  // After a delete, the button of the next one has the focus, or of the last that is left.
  function refocus(element, had) {
    if (!had || document.activeElement !== document.body) return;
    const left = all(had.kind, had.group).filter((one) => one.checkVisibility());
    const next = left[had.place] ?? left.at(-1) ?? find(HOME[element.closest(".block").id] ?? "#box");
    next?.focus();
  }

  document.addEventListener("submit", async (event) => {
    const form = event.target.closest("[data-event]");
    if (!form) return;
    event.preventDefault();
    if (form.dataset.event === "ask") return askBox();
    const fields = Object.fromEntries(new FormData(form));
    if (!(await send(form, form.dataset.event, { ...form.dataset, ...fields }))) return;
    if (form.dataset.event === "store") storing = fields.text;
    closeMenu(form.closest("details"));
    if (form.dataset.event === "edit" && mending?.fact === form.dataset.fact) {
      toFocus = `anew-${mending.turn}`;
      mending = null;
    }
  });

  // A focus that would be hidden goes to what opens the menu.
  function closeMenu(menu) {
    if (menu?.contains(document.activeElement)) find("summary", menu).focus();
    menu?.removeAttribute("open");
  }

  let storing = null; // the fact that was sent; its field keeps it until it is stored

  function factStored() {
    const field = find("#new-fact");
    if (storing !== null && field.value === storing) field.form.reset();
    storing = null;
  }

  // What could not be stored is not shown as if it were: a switch goes back to what the server told last.
  const asStored = (box) => (box.checked = box.defaultChecked);

  function refused() {
    storing = null;
    toFocus = "";
    all("#facts [type=checkbox]").forEach(asStored);
  }

  const opened = (event) => event.target.matches?.("details.way[open]") && find(".ways", event.target).scrollIntoView({ block: "nearest" });
  document.addEventListener("toggle", opened, true);

  document.addEventListener("change", (event) => {
    const box = event.target;
    if (box.type === "checkbox" && box.dataset.event) change(box);
    // Gradio takes a slider for released only by a pointer, not by a key.
    if (box.type === "range") box.dispatchEvent(new Event("pointerup", { bubbles: true }));
  });

  async function change(box) {
    if (!(await send(box, box.dataset.event, { ...box.dataset, on: box.checked }))) asStored(box);
  }

  let typing;
  document.addEventListener("input", (event) => {
    if (event.target.id === "box") typed(event.target);
    if (event.target.id === "filter") filterFacts();
    if (event.target.dataset?.live === undefined || !event.target.dataset.event) return;
    clearTimeout(typing);
    typing = setTimeout(() => send(event.target.parentElement, event.target.dataset.event, {}), 200);
  });

  document.addEventListener("keydown", (event) => {
    // Safari says that the composing is over before the key that ended it, which has this number there.
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Enter" && !event.shiftKey && event.target.id === "box") {
      event.preventDefault();
      event.target.form.requestSubmit();
    }
    if (event.key !== "Escape") return;
    if (closeTips(null)) return;
    const menu = event.target.closest?.("details.pop[open]");
    if (closeDrawers()) return;
    if (closePops(document.body)) return void (menu && find("summary", menu).focus());
    if (document.body.classList.contains("answering")) find("#composer .stop")?.click();
  });

  // --- the box ------------------------------------------------------------------------------------------------

  const DRAFT = "sequitur-draft";
  const box = () => find("#box");

  function typed(area) {
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, innerHeight * 0.4)}px`;
    sessionStorage.setItem(DRAFT, area.value);
  }

  function put(text) {
    box().value = text;
    typed(box());
  }

  function fill(text) {
    put(text);
    box().focus();
  }

  let asking = false; // a message was written and nothing came of it yet
  let asked = false; // it is on its way
  let placed; // is called once the page knows which conversation it shows
  const place = new Promise((resolve) => (placed = resolve));

  // Something came of it; where that is no answer, it does not stay as if there were to be one.
  function sentOver(root) {
    if (!asked) return;
    if (asking && root !== "answering" && find("#answering .sent")) showAnswering();
    asking = asked = false;
  }

  const busy = () => asking || document.body.classList.contains("answering");

  // Returns whether the message was sent.
  async function ask(utterance) {
    if (busy()) return false;
    box().focus();
    if (!utterance.trim()) return false;
    asking = true;
    echo(utterance);
    await place;
    await new Promise((resolve) => setTimeout(resolve)); // all that came with the conversation is shown
    if (!find("#answering .sent")) echo(utterance);
    asking = asked = await send(box(), "ask", { utterance });
    if (!asking) showAnswering();
    return asking;
  }

  // A message is there from the moment that it is sent; what the server shows of it, or nothing, comes in its place.
  function echo(utterance) {
    const piece = find("#answering [data-live]");
    if (!piece) return;
    const page = new DOMParser().parseFromString(
      `<div class="conversation"><article class="turn sent"><div class="said" dir="auto"></div><div class="about">
      <span class="sending"><span class="spinner" aria-hidden="true"></span>Sending</span></div></article></div>`,
      "text/html",
    );
    find(".said", page.body).textContent = utterance.trim();
    piece.replaceChildren(...page.body.childNodes);
    toEnd();
  }

  // What is typed while the message is sent stays in the box.
  async function askBox() {
    const sent = box().value;
    if (await ask(sent)) put(box().value.replace(sent, ""));
  }

  // Text that the server gives back: a message that could not be answered, or one that was taken back. It comes before
  // what was written meanwhile.
  function draftFromServer(element) {
    const draft = find("form", element)?.dataset.draft;
    if (draft) fill([draft, box().value].filter(Boolean).join("\n"));
    else if (!box().value) put(sessionStorage.getItem(DRAFT) ?? "");
  }

  function running() {
    const was = document.body.classList.contains("answering");
    const is = Boolean(find(":is(#answering, [data-place]) .running"));
    document.body.classList.toggle("answering", is);
    const active = document.activeElement;
    if (was && !is && (active === document.body || active?.closest("#composer"))) box()?.focus();
    speak();
  }

  let written = ""; // the id of the reply that was being written, while it is shown

  // What screen readers say: the step of the reply that is being written, then how it ended. An error says so itself.
  // How far a step is would be said ten times a second.
  function speak() {
    const step = all(":is(#answering, [data-place]) .running .steps > summary > .doing").at(-1);
    if (step) written = step.closest(".turn, .side").id;
    const reply = document.getElementById(written);
    if (!reply) written = "";
    const end = reply?.matches(".done") ? "Answered" : reply?.matches(".stopped") ? "Stopped" : "";
    const line = step?.textContent.trim() ?? end;
    const said = find("#spoken");
    if (said && said.textContent !== line) said.textContent = line;
  }

  const scroller = () => find("#talk");
  const nearEnd = () => !scroller() || scroller().scrollHeight - scroller().scrollTop - scroller().clientHeight < 120;
  const toEnd = () => scroller()?.scrollTo({ top: scroller().scrollHeight });

  // --- citations ----------------------------------------------------------------------------------------------

  let wanted = null; // the citation to show once its sources are there

  function cite(chip) {
    wanted = { turn: chip.dataset.turn, place: chip.dataset.cite };
    openPanel("sources");
    if (here().looked !== wanted.turn) send(chip, "look", { turn: wanted.turn });
    else requestAnimationFrame(() => showCitation(wanted));
  }

  function showCitation({ turn, place }) {
    if (find("#sources [data-looked]")?.dataset.looked !== turn) return;
    wanted = null;
    all("#sources .current").forEach((one) => one.classList.remove("current"));
    const marks = all("#sources mark").filter((mark) => mark.dataset.cites.split(" ").includes(place));
    if (!marks.length) return;
    marks.forEach((mark) => mark.classList.add("current"));
    const card = marks[0].closest(".card");
    card.classList.add("current");
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    card.focus({ preventScroll: true });
    marks[0].scrollIntoView({ block: "center", behavior: calm ? "auto" : "smooth" });
  }

  // --- facts --------------------------------------------------------------------------------------------------

  let wantedFact = null; // the fact to show once the facts are there
  let mending = null; // the fact that is being corrected, and the turn whose reply named it

  // Shows the facts that have what was typed, their groups unfolded meanwhile. The server is not asked.
  function filterFacts() {
    const wanted = find("#filter")?.value.trim().toLocaleLowerCase() ?? "";
    const cards = all("#facts .fact");
    for (const card of cards) card.hidden = !find(".text > span", card).textContent.toLocaleLowerCase().includes(wanted);
    for (const group of all("#facts .group")) {
      group.hidden = !find(".fact:not([hidden])", group);
      if (wanted && !group.open) group.dataset.folded = "";
      if (wanted) group.open = true;
      else if (group.dataset.folded !== undefined) group.open = false;
      if (!wanted) delete group.dataset.folded;
    }
    const none = find("#filtered");
    if (none) none.hidden = !cards.length || cards.some((card) => !card.hidden);
  }

  // Shows a fact with its editor open.
  function openFact(fact, turn) {
    wantedFact = fact;
    mending = { fact, turn };
    openPanel("facts");
    requestAnimationFrame(showFact);
  }

  function showFact() {
    const card = wantedFact && document.getElementById(`fact-${wantedFact}`);
    if (!card || !find(".facts").checkVisibility()) return;
    wantedFact = null;
    if (card.hidden) find("#filter").value = "";
    filterFacts();
    card.closest(".group")?.setAttribute("open", "");
    find("details.pop", card).setAttribute("open", "");
    card.scrollIntoView({ block: "center" });
    find("form input", card).focus({ preventScroll: true });
  }

  // --- panel, drawers, menus ----------------------------------------------------------------------------------

  const TABS = { sources: 0, facts: 1, documents: 2, settings: 3 };

  function openPanel(tab) {
    all("#panel [role=tab]")[TABS[tab]]?.click();
    if (phone()) setDrawer("panel", true);
  }

  function drawer(name) {
    setDrawer(name, !document.body.classList.contains(`show-${name}`));
  }

  function setDrawer(name, open) {
    closeDrawers();
    document.body.classList.toggle(`show-${name}`, open);
    find(`[data-drawer=${name}]`)?.setAttribute("aria-expanded", String(open));
    if (open) find(`#${name} button, #${name} input`)?.focus({ preventScroll: true });
  }

  function closeDrawers() {
    const open = all("[data-drawer][aria-expanded=true]");
    document.body.classList.remove("show-side", "show-panel");
    open.forEach((button) => button.setAttribute("aria-expanded", "false"));
    open[0]?.focus();
    return open.length > 0;
  }

  function closePops(target) {
    const open = all("details.pop[open]").filter((one) => !one.contains(target));
    open.forEach((one) => one.removeAttribute("open"));
    return open.length > 0;
  }

  // What a number means is told while it is pointed at or has the focus, until Escape. A pointer that rests where a
  // number comes to stand does not point at it.
  function tellTip(tip) {
    closeTips(tip);
    tip.setAttribute("open", "");
  }

  function closeTips(target) {
    const open = all(".tip[open]").filter((tip) => !tip.contains(target));
    open.forEach((tip) => tip.removeAttribute("open"));
    return open.length > 0;
  }

  const tipOf = (event) => event.target.closest?.(".tip > button")?.parentElement;
  document.addEventListener("focusin", (event) => {
    const tip = tipOf(event);
    if (!tip) return void closeTips(event.target);
    tellTip(tip);
    find(".why", tip).scrollIntoView({ block: "nearest" });
  });
  document.addEventListener("mousemove", (event) => {
    if (tipOf(event) && (event.movementX || event.movementY)) tellTip(tipOf(event));
  });
  document.addEventListener("mouseout", (event) => {
    const focused = document.activeElement?.closest(".tip");
    if (event.target.closest?.(".tip") !== focused) closeTips(event.relatedTarget ?? focused);
  });

  async function copy(button) {
    const clone = document.getElementById(button.dataset.copy).cloneNode(true);
    all(".unseen", clone).forEach((one) => one.remove());
    all(".chip", clone).forEach((chip) => (chip.textContent = `[${chip.textContent}]`));
    document.body.append(clone); // innerText knows about line breaks only where there is a layout
    const text = clone.innerText.trim();
    clone.remove();
    if (!(await toClipboard(text))) return;
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), 1500);
  }

  // A page that is shared over plain http has no clipboard to write to; there, what is selected can be copied.
  async function toClipboard(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return copySelected(text);
    }
  }

  function copySelected(text) {
    const active = document.activeElement;
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    active?.focus({ preventScroll: true });
    return done;
  }

  function download(given) {
    if (!given) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([given.textContent], { type: "text/plain;charset=utf-8" }));
    link.download = given.dataset.download;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  // --- what outlives a reload ---------------------------------------------------------------------------------

  // The address ends in the conversation's id; until one is shown, it says which to show.
  function remember() {
    if (!find("#transcript [data-conversation]")) return;
    const id = find("#transcript [data-temporary]") ? "" : here().conversation; // which a reload ends
    const hash = id ? `#${id}` : "";
    if (location.hash !== hash) history.replaceState(null, "", hash || location.pathname);
  }

  function theme(name) {
    document.body.classList.toggle("dark", name === "dark");
    localStorage.setItem("sequitur-theme", name);
  }

  // Gradio takes the system's theme as it starts and whenever that changes; the one that was chosen comes after it.
  function keepTheme() {
    const chosen = localStorage.getItem("sequitur-theme");
    if (chosen) setTimeout(() => theme(chosen), 0);
  }

  // --- is the server there? -----------------------------------------------------------------------------------

  let server = null; // the id of the server that this page came from
  let entered = false; // it has let this person in: this is not the page on which to log in

  async function told(path) {
    const answer = await fetch(`gradio_api/${path}`, { cache: "no-store", signal: AbortSignal.timeout(4000) });
    return { ok: answer.ok, said: await answer.json() };
  }

  // Whether an event would be heard. Where the server is another one by now or the login is over, the page begins anew.
  async function alive() {
    const [app, login] = await Promise.all([told("app_id"), told("login_check")]).catch(() => []);
    document.body.classList.toggle("down", !app?.ok);
    if (!app?.ok) {
      if (asking) showAnswering();
      asking = asked = false; // nothing may ever come of what was sent
      return false;
    }
    server ??= app.said.app_id;
    entered ||= login.ok;
    const same = app.said.app_id === server;
    if (!same || (entered && !login.ok)) location.reload();
    return same && login.ok;
  }

  const transcript = () => find("#transcript [data-live]");

  function show(conversation) {
    if (transcript()) send(transcript(), "open", { conversation });
  }

  // Another tab may have gone on with this conversation meanwhile.
  document.addEventListener("visibilitychange", () => {
    const busy = document.body.classList.contains("answering");
    if (document.visibilityState === "visible" && !busy) show(here().conversation);
  });
  addEventListener("hashchange", () => {
    const id = location.hash.slice(1);
    if (id !== here().conversation) show(id);
  });
  function start() {
    keepTheme();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", keepTheme);
    alive();
    setInterval(alive, 3000);
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();

  return { live };
})();
