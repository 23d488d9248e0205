// Looks at a page of `division report` in a browser: nothing is missing, nothing overlaps, bars are as long as their numbers.
// What is wrong goes into an element called verdict, a line each; "fine" if nothing is.
(function () {
    var problems = [];
    function complain(what) { problems.push(what); }

    // A text's box without the room above and below its letters, in pixels of the drawing.
    function boxOf(text, scale) {
        var box = text.getBoundingClientRect();
        return { left: box.left + scale, right: box.right - scale, top: box.top + 2.5 * scale, bottom: box.bottom - 2.5 * scale };
    }
    function overlap(a, b) { return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom; }

    document.querySelectorAll('svg.panel').forEach(function (panel) {
        var name = panel.closest('section').id + ', ' + panel.getAttribute('aria-label');
        var frame = panel.getBoundingClientRect(), scale = frame.width / panel.viewBox.baseVal.width;
        var texts = Array.from(panel.querySelectorAll('text'));
        var boxes = texts.map(function (text) { return boxOf(text, scale); });
        if (texts.length < 3) complain(name + ': it has next to no words');
        if (!(frame.width > 250 && frame.height > 50)) complain(name + ': it is ' + frame.width + ' by ' + frame.height);
        if (/NaN|inf/i.test(panel.innerHTML.replace(/<title>[^<]*<\/title>|<text[^>]*>[^<]*/g, ''))) complain(name + ': a coordinate is no number');
        if (12 * scale < 9) complain(name + ': its letters are ' + 12 * scale + ' pixels high');
        boxes.forEach(function (box, i) {
            if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 3 || box.bottom > frame.bottom + 3)
                complain(name + ': "' + texts[i].textContent + '" goes over the edge');
            for (var j = 0; j < i; j++)
                if (overlap(box, boxes[j])) complain(name + ': "' + texts[i].textContent + '" and "' + texts[j].textContent + '" overlap');
        });
        panel.querySelectorAll('path').forEach(function (path) {
            var box = path.getBoundingClientRect();
            if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1) complain(name + ': a line goes over the edge');
        });
    });

    // Bars of memory, as long as bytes.
    var bytes = window.expectedBytes || {}, bars = {};
    document.querySelectorAll('#memory rect.bar').forEach(function (bar) {
        var words = bar.querySelector('title').textContent;
        bars[words.slice(0, words.lastIndexOf(': '))] = bar.getBoundingClientRect().width;
    });
    Object.keys(bytes).forEach(function (method) {
        var wanted = bars.none * bytes[method] / bytes.none;
        if (!(Math.abs(bars[method] - wanted) < 1)) complain('memory: the bar of ' + method + ' is ' + bars[method] + ' wide and should be ' + wanted);
    });

    var sections = Array.from(document.querySelectorAll('section:has(figure)')).map(function (s) { return s.id; });
    (window.expectedSections || []).forEach(function (id) { if (sections.indexOf(id) < 0) complain('there is no figure ' + id); });
    document.querySelectorAll('section:has(figure)').forEach(function (s) {
        if (!s.querySelector('h2') || !s.querySelector('svg.panel') || !s.querySelector('table tbody tr')) complain(s.id + ': a heading, drawing or table is missing');
    });
    if (document.documentElement.scrollWidth > innerWidth) complain('the page is wider than the window: ' + document.documentElement.scrollWidth);
    if (performance.getEntriesByType('resource').length > 0) complain('something was loaded');
    var dark = matchMedia('(prefers-color-scheme:dark)').matches;
    if (window.expectedDark !== undefined && dark !== window.expectedDark) complain('the scheme is not the one asked for');

    // A hint follows the pointer.
    var touched = document.querySelector('svg.panel rect.bar');
    touched.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: 100, clientY: 100 }));
    var hint = document.getElementById('hint');
    if (!hint || hint.hidden || hint.textContent.length < 4) complain('pointing at a bar says nothing');
    document.querySelector('h1').dispatchEvent(new PointerEvent('pointermove', { bubbles: true }));
    if (!hint.hidden) complain('the hint stays');

    var verdict = document.createElement('pre');
    verdict.id = 'verdict';
    verdict.textContent = problems.length > 0 ? problems.join('\n') : 'fine';
    document.body.appendChild(verdict);
})();
